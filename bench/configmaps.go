package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	configMaps          = 10_000
	configMapAnnotation = 100 << 10 // bytes
	configMapBound      = 128 << 20 // bytes of the manager's memory, an eighth of its limit
	configMapNamespace  = "bench-configmaps"
)

// beside measures what other people's ConfigMaps cost the manager of WebServers, which caches the metadata of all:
// ConfigMaps on which kubectl apply left a copy of their content.
func beside(ctx context.Context, b *bench) ([]figure, error) {
	if err := b.namespace(ctx, configMapNamespace, nil); err != nil {
		return nil, err
	}
	before, err := b.settledMemory(ctx, webServerOperator)
	if err != nil {
		return nil, err
	}
	if err := parallel(ctx, configMaps, func(i int) error {
		made := &corev1.ConfigMap{}
		made.Namespace, made.Name = configMapNamespace, fmt.Sprintf("other-%06d", i)
		made.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat("0123456789abcdef", configMapAnnotation/16)}
		return b.client.Create(ctx, made)
	}); err != nil {
		return nil, err
	}
	came, err := b.settledMemory(ctx, webServerOperator)
	if err != nil {
		return nil, err
	}
	if err := b.stopped(ctx, webServerOperator); err != nil {
		return nil, err
	}
	if err := b.scaled(ctx, webServerOperator, "1"); err != nil {
		return nil, err
	}
	again, err := b.settledMemory(ctx, webServerOperator)
	if err != nil {
		return nil, err
	}
	row := func(what string, m memory) figure {
		return figure{
			measure: fmt.Sprintf("%d ConfigMaps with an annotation of %d KiB", configMaps, configMapAnnotation>>10),
			what:    what, value: inMiB(m.workingSet),
			spread: fmt.Sprintf("%s before, peak %s", inMiB(before.workingSet), inMiB(m.peak)),
			bound:  "≤ " + inMiB(configMapBound), missed: m.workingSet > configMapBound,
		}
	}
	return []figure{
		row("working set of WebServer's manager", came),
		row("the same, after a restart", again),
	}, b.command(ctx, "kubectl", "delete", "namespace", configMapNamespace)
}
