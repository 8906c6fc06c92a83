// Package rude writes in ways that a sweep cannot follow.
package rude

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func both(ctx context.Context, c client.Client, obj client.Object) error {
	create := c.Create
	return errors.Join(create(ctx, obj), c.Update(ctx, obj), c.Delete(ctx, obj))
}
