package report

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/internal/kit/run"
)

// redacted is what stands where something was taken out.
const redacted = "REDACTED"

// redactor takes out of objects and texts what may be secret. What it takes out of an object of
// a user it remembers, to take it out wherever else it turns up: in a message, or in a log.
type redactor struct {
	known    map[string]bool
	names    map[string]bool // of objects, which stay
	replacer *strings.Replacer

	files []string        // what is in ConfigMaps
	cited map[string]bool // words, and whether they are from there
}

// shortestKnown is the length below which a value is taken out in its place only: elsewhere, it
// may be any word.
const shortestKnown = 6

func (r *redactor) remember(value string) {
	value = strings.TrimSpace(value)
	if len(value) < shortestKnown {
		return
	}
	r.known[value], r.replacer = true, nil
}

// text is a text without what is known, and without what looks like a secret.
func (r *redactor) text(s string) string {
	if r.replacer == nil {
		var pairs []string
		for _, value := range slices.SortedFunc(maps.Keys(r.known), func(a, b string) int { return cmp.Compare(len(b), len(a)) }) {
			if !r.names[value] {
				pairs = append(pairs, value, redacted)
			}
		}
		r.replacer = strings.NewReplacer(pairs...)
	}
	s = r.withoutCitations(r.replacer.Replace(s))
	for _, p := range patterns {
		s = p.expression.ReplaceAllString(s, p.replacement)
	}
	return s
}

var quote = regexp.MustCompile("\\\\?[\"'`]") // also in a line of JSON

// withoutCitations takes out what programs quote of their files: nginx, for example, does so with what it does not understand.
func (r *redactor) withoutCitations(s string) string {
	var text strings.Builder
	quotes, from := quote.FindAllStringIndex(s, -1), 0
	for i := 1; i < len(quotes); i++ {
		if begin, end := quotes[i-1][1], quotes[i][0]; r.isCited(s[begin:end]) {
			text.WriteString(s[from:begin] + redacted)
			from = end
		}
	}
	return text.String() + s[from:]
}

func (r *redactor) isCited(word string) bool {
	is, isKnown := r.cited[word]
	if !isKnown {
		begun := strings.TrimSuffix(word, "...") // nginx quotes ten characters of a long one
		is = len(begun) >= shortestKnown && !r.names[begun] &&
			slices.ContainsFunc(r.files, func(file string) bool { return strings.Contains(file, begun) })
		if r.cited == nil {
			r.cited = map[string]bool{}
		}
		r.cited[word] = is
	}
	return is
}

// patterns are what looks like a secret.
var patterns = []struct {
	expression  *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(-----END [A-Z ]*PRIVATE KEY-----|\z)`), redacted},
	{regexp.MustCompile(`(://)[^/@\s"']+@`), "${1}" + redacted + "@"},
	{regexp.MustCompile(`\?[\w.%~\[\]-]+=[^\s"'<>]*`), "?" + redacted},
	{regexp.MustCompile(`(?i)\b(bearer|basic) +[\w.~+/=-]{6,}`), "${1} " + redacted},
	{regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(\.[\w-]*)?`), redacted}, // a JSON Web Token
	{regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`), redacted},          // an AWS access key's ID
	{regexp.MustCompile(`(?i)([\w-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|credentials?|authorization))` +
		`(\\?["']?\s*[:=]\s*)(\\?"[^"]*"|'[^']*'|[^\s,;&"'\\]+)`), "${1}${2}" + redacted},
}

// object takes out of an object what may be secret. isUsers is whether a user wrote it.
func (r *redactor) object(o map[string]any, isUsers bool) {
	kind, _ := o["kind"].(string)
	r.learnFiles(o)
	for _, key := range []string{"data", "binaryData", "stringData"} { // of ConfigMaps and ControllerRevisions
		if o[key] != nil {
			o[key] = r.sizes(o[key])
		}
	}
	if metadata, ok := o["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	if spec, ok := o["spec"].(map[string]any); ok && kind == "EtcdCluster" {
		for _, key := range []string{"backup", "restore", "selfHosted"} { // in which anything can be, of an earlier API
			if spec[key] != nil {
				spec[key] = map[string]any{redacted: true}
			}
		}
	}
	if kind == "At" {
		r.saidByCommand(o)
	}
	r.walk(o, isUsers)
}

// learnFiles remembers what is in an object if that is a ConfigMap, to take it out where a program quotes it.
func (r *redactor) learnFiles(o map[string]any) {
	if data, ok := o["data"].(map[string]any); ok && o["kind"] == "ConfigMap" {
		for _, value := range data {
			r.files, r.cited = append(r.files, fmt.Sprint(value)), nil
		}
	}
}

// scrub has every text in an object without what is known. It comes after all have been learnt from.
func (r *redactor) scrub(value any) any {
	switch value := value.(type) {
	case string:
		return r.text(value)
	case map[string]any:
		for key := range value {
			if key != "name" && key != "namespace" {
				value[key] = r.scrub(value[key])
			}
		}
	case []any:
		for i := range value {
			value[i] = r.scrub(value[i])
		}
	}
	return value
}

// walk goes by the names of fields, wherever they are.
func (r *redactor) walk(value any, isUsers bool) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			if replaced, isReplaced := r.field(key, field, isUsers); isReplaced {
				value[key] = replaced
				continue
			}
			r.walk(field, isUsers)
		}
	case []any:
		for _, item := range value {
			r.walk(item, isUsers)
		}
	}
}

func (r *redactor) field(key string, field any, isUsers bool) (any, bool) {
	switch key {
	case "env", "etcdEnv", "httpHeaders":
		items, isList := field.([]any)
		for _, item := range items {
			if pair, ok := item.(map[string]any); ok && pair["value"] != nil {
				pair["value"] = r.learn(pair["value"], isUsers)
			}
		}
		return field, isList
	case "command", "args", "extraArgs", "check":
		return r.arguments(field, isUsers), true
	case "inline":
		return r.learn(field, isUsers), true
	case "annotations":
		r.annotations(field, isUsers)
		return field, true
	case "volumeAttributes", "options": // of volumes
		if values, ok := field.(map[string]any); ok {
			for name := range values {
				values[name] = r.learn(values[name], isUsers)
			}
			return field, true
		}
	}
	return nil, false
}

func (r *redactor) learn(value any, isUsers bool) any {
	if text, ok := value.(string); ok && isUsers {
		r.remember(text)
	}
	return redacted
}

var flagName = regexp.MustCompile(`^(--[a-z][a-z-]{0,40}|-[A-Za-z])(=|$)`)

// arguments keep the names of flags, and lose all else.
func (r *redactor) arguments(field any, isUsers bool) any {
	list, ok := field.([]any)
	if !ok {
		return r.learn(field, isUsers)
	}
	for i := range list {
		argument, _ := list[i].(string)
		name := flagName.FindString(argument)
		if name == argument && name != "" || argument == run.All || slices.Contains(cli.Operators, argument) {
			continue
		}
		list[i] = name + r.learn(argument[len(name):], isUsers).(string)
	}
	return list
}

var (
	// The prefixes are those of package annotation of etcd, and of annotations.go of the other operators.
	ownAnnotation = regexp.MustCompile(`^((at\.example\.com|etcd\.database\.coreos\.com|memcached-operator|webserver-operator|deployment\.kubernetes\.io)/` +
		`|etcd\.version$|kubectl\.kubernetes\.io/restartedAt$)`)
	plainValue = regexp.MustCompile(`^[\w.:,@/+-]{0,128}$`)
)

// annotations keep those of the operators that are a word: others hold whole objects, or what users like.
func (r *redactor) annotations(field any, isUsers bool) {
	all, _ := field.(map[string]any)
	for name, value := range all {
		text, _ := value.(string)
		isKept := ownAnnotation.MatchString(name) && plainValue.MatchString(text) && name != "webserver-operator/retry"
		if !isKept {
			all[name] = r.learn(value, isUsers)
		}
	}
}

// sizes are the keys of data, each with its size.
func (r *redactor) sizes(data any) any {
	values, ok := data.(map[string]any)
	if !ok {
		return redacted
	}
	for key := range values {
		text, isText := values[key].(string)
		values[key] = redacted
		if isText {
			values[key] = fmt.Sprintf("%s (%d bytes)", redacted, len(text))
		}
	}
	return values
}

// afterExitCode is what a command said last, in a message of an At, or such a message in a line of a log.
var afterExitCode = regexp.MustCompile(`(exit code \d+): (?:\\.|[^"\\\n])*`)

func withoutLastWords(text string) string {
	return afterExitCode.ReplaceAllString(text, "${1}: "+redacted)
}

// saidByCommand takes out of an At what its command has printed.
func (r *redactor) saidByCommand(at map[string]any) {
	status, _ := at["status"].(map[string]any)
	if output, isText := status["output"].(string); isText {
		status["output"] = r.learn(output, true)
	}
	if problem, isText := status["problem"].(string); isText {
		status["problem"] = beforeLastWords(problem)
	}
	conditions, _ := status["conditions"].([]any)
	for _, item := range conditions {
		if condition, ok := item.(map[string]any); ok {
			message, _ := condition["message"].(string)
			condition["message"] = beforeLastWords(message)
		}
	}
}

// beforeLastWords is a whole message without what a command said last, whatever that has in it.
func beforeLastWords(message string) string {
	if at := afterExitCode.FindStringIndex(message); at != nil {
		return withoutLastWords(message[:at[1]])
	}
	return message
}

// lastWords takes out of a pod's status what its containers said last: that of an At's pod is its user's.
func (r *redactor) lastWords(pod map[string]any) {
	status, _ := pod["status"].(map[string]any)
	for _, key := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		list, _ := status[key].([]any)
		for _, item := range list {
			container, _ := item.(map[string]any)
			for _, key := range []string{"state", "lastState"} {
				state, _ := container[key].(map[string]any)
				if end, ok := state["terminated"].(map[string]any); ok && end["message"] != nil {
					end["message"] = r.learn(end["message"], true)
				}
			}
		}
	}
}
