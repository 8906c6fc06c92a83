package at

// Annotations of pods. The operator writes and reads them, and nobody else.
const (
	// generationAnnotation has the generation of the At that the pod was made from:
	// until it is claimed, the At may change.
	generationAnnotation = "at.example.com/generation"
	// ownerAnnotation has group, name and UID of the At that the pod was made for,
	// should the owner reference be lost.
	ownerAnnotation = "at.example.com/owner"
	// withdrawnAnnotation of a claimed or prepared pod says that its gate must not be
	// removed any more, or that its process is to end, and why: of a claimed one that is gated
	// it is the reason of the result.
	withdrawnAnnotation = "at.example.com/withdrawn"
	// releasedAnnotation has when the gate was removed.
	releasedAnnotation = "at.example.com/released"
)
