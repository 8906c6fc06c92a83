package podtemplate

import (
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/lru"
)

// mostRead bounds how many templates are remembered.
const mostRead = 200

// A template that is kept as JSON is read at every reconcile, and seldom another one.
var read, applied = lru.New(mostRead), lru.New(mostRead)

// Read is the template with this JSON. Others have the same one: it must not be changed.
func Read(text string) (*corev1.PodTemplateSpec, error) {
	return remembered[corev1.PodTemplateSpec](read, text)
}

// Applied is the template with this JSON, as a part of what is applied. Annotations may be
// added to it; nothing else must be changed, because others have the same.
func Applied(text string) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	shared, err := remembered[corev1ac.PodTemplateSpecApplyConfiguration](applied, text)
	if err != nil {
		return nil, err
	}
	own := *shared
	if meta := shared.ObjectMetaApplyConfiguration; meta != nil {
		copied := *meta
		copied.Annotations = maps.Clone(meta.Annotations)
		own.ObjectMetaApplyConfiguration = &copied
	}
	return &own, nil
}

func remembered[T any](memo *lru.Cache, text string) (*T, error) {
	if known, ok := memo.Get(text); ok {
		return known.(*T), nil
	}
	template := new(T)
	if err := json.Unmarshal([]byte(text), template); err != nil {
		return nil, fmt.Errorf("read the pod template: %w", err)
	}
	memo.Add(text, template)
	return template, nil
}
