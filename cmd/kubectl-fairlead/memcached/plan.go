package memcached

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	operator "example.com/fairlead/operators/memcached"
)

// change is `kubectl fairlead memcached plan`.
type change struct {
	*cli.CLI
	file, image, version, memory string
	size                         int32
}

func planCommand(c *cli.CLI) *cobra.Command {
	o := &change{CLI: c}
	cmd := &cobra.Command{
		Use:   "plan NAME (-f FILE | --image IMAGE | --version VERSION | --memory MEMORY | --size N)",
		Short: "Say what a change would do to the servers and their items",
		Long: "Say what a change of a Memcached would do, and change nothing: which servers restart,\nwarm or cold, how many items are lost, and how many keys clients look for elsewhere.\n\n" +
			"The API server checks the change, and the operator's own code says what would follow from\nit. How many items there are, the servers are asked.",
		Example: "  kubectl fairlead memcached plan sessions --version 1.6.38\n  kubectl fairlead memcached plan sessions --size 5\n" +
			"  kubectl fairlead memcached plan sessions -f sessions.yaml",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.CompleteNames("memcached"),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "A manifest of the Memcached as it would be; - is standard input")
	flags.StringVar(&o.image, "image", "", "Another image")
	flags.StringVar(&o.version, "version", "", "Another version")
	flags.StringVar(&o.memory, "memory", "", "Another amount of memory for items, such as 256Mi")
	flags.Int32Var(&o.size, "size", 0, "Another number of servers")
	cmd.MarkFlagsOneRequired("filename", "image", "version", "memory", "size")
	for _, flag := range []string{"image", "version", "memory", "size"} {
		cmd.MarkFlagsMutuallyExclusive("filename", flag)
	}
	return cmd
}

func (o *change) run(cmd *cobra.Command, name string) error {
	ctx := cmd.Context()
	k, namespace, err := o.Client()
	if err != nil {
		return err
	}
	var now cachev1alpha1.Memcached
	if err := k.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &now); err != nil {
		return cli.Explain(err)
	}
	then := now.DeepCopy()
	if err := o.edit(then, cmd.Flag("size").Changed); err != nil {
		return err
	}
	if err := k.Update(ctx, then, client.DryRunAll); err != nil {
		return err // in the words of the API server, which checks it
	}
	then.Status = now.Status
	resizes, err := o.Serves(ctx, corev1.SchemeGroupVersion, "pods/resize")
	if err != nil {
		return err
	}
	would, err := operator.PreviewOf(ctx, k, then, resizes)
	if err != nil {
		return err
	}
	pool, err := askPool(ctx, o.CLI, k, &now, would.Servers)
	if err != nil {
		return err
	}
	return o.printPlan(&now, then, would, pool)
}

// edit makes the change that the flags or the file say.
func (o *change) edit(mc *cachev1alpha1.Memcached, hasSize bool) error {
	if o.file != "" {
		return o.read(mc)
	}
	mc.Spec.Image = cmp.Or(o.image, mc.Spec.Image)
	if o.version != "" {
		mc.Spec.Version = o.version
	}
	if o.memory != "" {
		memory, err := resource.ParseQuantity(o.memory)
		if err != nil {
			return fmt.Errorf("--memory=%s: it is no amount of memory, such as 256Mi", o.memory)
		}
		mc.Spec.Memory = memory
	}
	if hasSize {
		mc.Spec.Size = &o.size
	}
	return nil
}

// read takes the spec of a manifest.
func (o *change) read(mc *cachev1alpha1.Memcached) error {
	var text []byte
	var err error
	if o.file == "-" {
		text, err = io.ReadAll(o.In)
	} else {
		text, err = os.ReadFile(o.file)
	}
	if err != nil {
		return err
	}
	var manifest cachev1alpha1.Memcached
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		return fmt.Errorf("-f %s: %w", o.file, err)
	}
	if manifest.Kind != "Memcached" || manifest.Name != mc.Name {
		return fmt.Errorf("-f %s: it is %s/%s, and not memcached/%s", o.file, manifest.Kind, manifest.Name, mc.Name)
	}
	if manifest.Spec.Version == "" && manifest.Spec.Image == "" {
		manifest.Spec.Version = mc.Spec.Version // as kubectl apply does: a default is stored with the object
	}
	mc.Spec = manifest.Spec
	return nil
}

// printPlan says what would happen.
func (o *change) printPlan(now, then *cachev1alpha1.Memcached, would operator.Preview, pool []server) error {
	if would.Problem != "" && (would.IsHeld || *now.Spec.Size == *then.Spec.Size) {
		_, err := fmt.Fprintf(o.Out, "change  %s: %s\n", o.Colour(cli.Red, "none"), would.Problem)
		return err
	}
	var p cli.Page
	if would.Problem != "" {
		p.Add("refused", "%s", would.Problem)
	}
	if u := would.Upgrade; u == nil {
		p.Add("change", "no server is changed")
	} else {
		colour := map[cachev1alpha1.UpgradeKind]int{cachev1alpha1.Cold: cli.Red, cachev1alpha1.Warm: cli.Green, cachev1alpha1.Untouched: cli.Green}[u.Kind]
		p.Add("change", "%s: %s", o.Colour(colour, string(u.Kind)), u.Message)
	}
	var lost, all int64
	isKnown := true
	going, which := leaving(now, then, pool)
	for _, s := range pool {
		fate := "stays as it is"
		isChanged, restarts, keeps := slices.Contains(would.Changed, s.name), slices.Contains(would.Restarted, s.name), slices.Contains(would.Kept, s.name)
		switch {
		case slices.Contains(which, s.name):
			fate = "goes, with its items"
			lost += s.items
		case !isChanged:
		case restarts && keeps:
			fate = "restarts in its pod, and keeps its items"
		case keeps:
			fate = "is changed while it runs"
		case restarts:
			fate = "restarts in its pod, and starts empty"
			lost += s.items
		default:
			fate = "is replaced, and starts empty"
			lost += s.items
		}
		all += s.items
		items := strconv.FormatInt(s.items, 10) + " items"
		if s.problem != nil {
			items, isKnown = "items unknown: "+s.problem.Error(), false
		}
		p.Add("  "+s.name, "%s; %s", fate, items)
	}
	switch {
	case !isKnown:
		p.Add("at stake", "%d items or more", lost)
	case going > len(which):
		p.Add("at stake", "%d of %d items, and those of %d servers that go: which is not known before", lost, all, going)
	default:
		p.Add("at stake", "%d of %d items", lost, all)
	}
	if from, to := *now.Spec.Size, *then.Spec.Size; from != to {
		p.Add("size", "%s", resized(int64(from), int64(to), all))
	}
	w := printers.GetNewTabWriter(o.Out)
	for _, line := range p {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", line[0], line[1])
	}
	return w.Flush()
}

// resized says what another number of servers means for clients.
func resized(from, to, items int64) string {
	if from == 0 || to == 0 {
		return fmt.Sprintf("from %d to %d servers: nothing is cached where there is none", from, to)
	}
	text := fmt.Sprintf("from %d to %d servers: clients look for about %s of the keys elsewhere if they hash consistently, and for %s if by the modulus",
		from, to, percent(ringMoves(from, to)), percent(modulusMoves(from, to)))
	if items > 0 {
		text += fmt.Sprintf(", that is %.0f or %.0f items", ringMoves(from, to)*float64(items), modulusMoves(from, to)*float64(items))
	}
	return text
}

// leaving is how many servers a smaller size takes away, and which, if that is known: the last of a
// stable pool.
func leaving(now, then *cachev1alpha1.Memcached, pool []server) (int, []string) {
	stays := int(*then.Spec.Size)
	if len(pool) <= stays {
		return 0, nil
	}
	if now.Spec.Identity != cachev1alpha1.StableIdentity || then.Spec.Identity != cachev1alpha1.StableIdentity {
		return len(pool) - stays, nil
	}
	var names []string
	for _, s := range pool {
		names = append(names, s.name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return len(pool) - stays, names[stays:]
}

// ringMoves is the part of the keys that another server has, with consistent hashing.
func ringMoves(from, to int64) float64 { return 1 - float64(min(from, to))/float64(max(from, to)) }

// modulusMoves is the same where the server is the hash modulo the number of servers: of lcm(from, to)
// hashes, min(from, to) have the same server.
func modulusMoves(from, to int64) float64 {
	a, b := from, to
	for b != 0 {
		a, b = b, a%b
	}
	return 1 - float64(min(from, to))/float64(from/a*to)
}

func percent(part float64) string { return fmt.Sprintf("%.0f%%", 100*part) }
