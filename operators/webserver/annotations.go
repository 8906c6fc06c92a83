package webserver

// The operator writes all of these, and nobody else reads them. What a user may
// write is AnnotationRetry and AnnotationAdoptBy, in the API. Their prefix is the one of 0.0.2: another one
// in the pod template would restart the pods of every WebServer.

// Annotations of a Deployment: the state that a rollback and the next leader need.
const (
	// revisionAnnotation is the hash of the pod template. The pods have it, and the
	// ControllerRevision that keeps the template.
	revisionAnnotation = "webserver-operator/revision"
	// templateAnnotation is the pod template as it was applied, in JSON.
	templateAnnotation = "webserver-operator/template"
	// goodAnnotation is the last good revision before it. A ControllerRevision has
	// its template.
	goodAnnotation = "webserver-operator/last-good-revision"
	// adoptedAnnotation of a Deployment that was taken over has the revision that
	// the spec meant then: as long as it means that, the pods stay as they are.
	adoptedAnnotation = "webserver-operator/adopted"
)

// podsOf is the label that says whose pod it is. The tutorial's operator selects by it,
// so that its Deployment can be taken over.
const podsOf = "webserver_cr"
