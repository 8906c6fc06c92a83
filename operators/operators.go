// Package operators is the list of the operators. Everything else, the
// program, the Makefile and the tests, finds them by looping over it or over
// the folders beside it.
package operators

import (
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/at"
	"example.com/fairlead/operators/etcd"
	"example.com/fairlead/operators/memcached"
	"example.com/fairlead/operators/webserver"
)

// All has one line per operator.
var All = []run.Operator{
	at.Operator,
	etcd.Operator,
	memcached.Operator,
	webserver.Operator,
}
