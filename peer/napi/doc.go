// Package napi asks Triton's networking API (TritonDataCenter/sdc-napi) about
// NIC records, and changes them. The rules that the API's documentation does not
// tell (paging, conditional requests, the meanings of 404, what is strict and
// what is not) are those of its sources; where a server is older than a rule, the
// answer is an error and never half of one: a record that is deleted on the word
// of a misread answer takes a tenant's address away.
package napi
