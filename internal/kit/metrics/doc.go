// Package metrics makes the operators' metrics and knows them all, so that docs/metrics.md is
// written from the code.
//
// Names follow the Prometheus conventions: fairlead_<what>, base units, _total for what only
// grows. A number of series that grows with the number of objects would cost those most who are
// best off, so no metric has an object's name as a label, with two exceptions that stay small:
//
//   - fairlead_object_problem has a series for each object that is in trouble, at most
//     [MostProblems] a kind, see [Objects].
//   - a metric that is about the object that is worst off says which that is. It is one series.
//
// What is said of single objects is summed up when somebody looks, by a [Board]: nothing is counted
// up and down that could go wrong by one for ever. Only the process that leads knows objects; the
// others have no such series.
package metrics
