package example

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of Order.
var GroupVersion = schema.GroupVersion{Group: "toy.example.com", Version: "v1"}

// AddToScheme registers the Go types. Other operators have theirs in api/, where the
// copying below is generated.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Order{}, &OrderList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Order is work that a pod does.
type Order struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status OrderStatus `json:"status,omitzero"`
}

// OrderStatus is how far the work is.
type OrderStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OrderList is what a list of them is.
type OrderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Order `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (o *Order) DeepCopyObject() runtime.Object {
	c := &Order{TypeMeta: o.TypeMeta}
	o.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = append(c.Status.Conditions, o.Status.Conditions...)
	return c
}

// DeepCopyObject implements runtime.Object.
func (l *OrderList) DeepCopyObject() runtime.Object {
	c := &OrderList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Order))
	}
	return c
}
