package api

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BMCNamespace is where the Secrets of the BMCs are, and nothing else: the controller may read all
// that is there.
const BMCNamespace = "sledctl-bmcs"

// What a Secret of a BMC has.
const (
	SecretUsername = "username"
	SecretPassword = "password"
	SecretCA       = "ca.crt" // of Redfish: the authorities of its certificate, in PEM
)

// The values of SledBMCSpec.Held.
const (
	HeldKeep = "keep" // the sled is not powered off while there is one
	HeldEnd  = "end"  // they end with the sled
)

// SledBMCSpec is how the BMC of a sled is reached.
//
// +kubebuilder:validation:XValidation:rule="self.protocol == 'redfish' || !has(self.system)",message="system is a field of redfish only"
// +kubebuilder:validation:XValidation:rule="self.protocol == 'redfish' || !has(self.fingerprint)",message="fingerprint is a field of redfish only"
type SledBMCSpec struct {
	// Protocol is redfish, or ipmi (2.0 over LAN).
	//
	// +kubebuilder:validation:Enum=redfish;ipmi
	Protocol string `json:"protocol"`

	// Address is HOST or HOST:PORT.
	//
	// +kubebuilder:validation:Pattern="^[^/@ ]+$"
	// +kubebuilder:validation:MaxLength=260
	Address string `json:"address"`

	// Secret is the name of a Secret in the namespace sledctl-bmcs, with username and password, and
	// for Redfish ca.crt, if the BMC's certificate is signed by an authority of your own.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret"`

	// Fingerprint is the SHA-256 of the BMC's certificate, in hex. With it, no authority is asked.
	//
	// +kubebuilder:validation:Pattern="^[0-9a-fA-F]{64}$"
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`

	// System is the path of the sled in Redfish, e.g. /redfish/v1/Systems/1. Without it, the BMC
	// must have one system only.
	//
	// +kubebuilder:validation:Pattern="^/redfish/"
	// +optional
	System string `json:"system,omitempty"`

	// UUID is that of the sled, as its BMC reports it. With it, the BMC of another sled is refused.
	//
	// +kubebuilder:validation:Pattern="^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
	// +optional
	UUID string `json:"uuid,omitempty"`

	// Held is what is done while a VM whose restart is hold is on the sled: keep (the sled is not
	// powered off), or end (the VM ends with the sled).
	//
	// +kubebuilder:validation:Enum=keep;end
	// +kubebuilder:default=keep
	// +optional
	Held string `json:"held,omitempty"`
}

// ConditionAnswers is the condition of a SledBMC: whether it answers, and if not, why.
const ConditionAnswers = "Answers"

// SledBMCStatus is what a BMC has answered last.
type SledBMCStatus struct {
	// Power is On or Off, or another word of the BMC for what is between. Without it, the BMC did
	// not answer.
	//
	// +optional
	Power string `json:"power,omitempty"`

	// PoweredOff is when the fleet last had the sled powered off. It stays off until a person powers
	// it on.
	//
	// +optional
	PoweredOff *metav1.Time `json:"poweredOff,omitempty"`

	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SledBMC is the BMC of the sled of the same name. The fleet asks it to power the sled off when a VM
// whose restart is power is on it, and the sled does not answer.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bmc
// +kubebuilder:printcolumn:name="Protocol",type=string,JSONPath=".spec.protocol"
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=".spec.address"
// +kubebuilder:printcolumn:name="Power",type=string,JSONPath=".status.power"
// +kubebuilder:printcolumn:name="Answers",type=string,JSONPath=".status.conditions[?(@.type==\"Answers\")].reason"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type SledBMC struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SledBMCSpec `json:"spec"`
	// +optional
	Status SledBMCStatus `json:"status,omitempty"`
}

// SledBMCList is a list of BMCs.
//
// +kubebuilder:object:root=true
type SledBMCList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SledBMC `json:"items"`
}
