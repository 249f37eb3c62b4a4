// Package propolis speaks to propolis-server, the program that drives one
// virtual machine from inside a zone (oxidecomputer/propolis): HTTP with JSON,
// at whichever version of the API the server takes.
//
// Three habits of the server shape everything here. A machine is made once: a
// second request is refused, whatever it says, so looking comes before asking.
// Asking for a state only queues it; its result is learnt by waiting for a
// generation, which rises by one with each state and can be seen to skip. And an
// answer that there is no machine is status 424, while an unknown path is 404: only
// the former says anything about machines.
package propolis
