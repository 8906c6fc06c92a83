// Command dist makes what Fairlead is installed from: images without a
// container engine, manifests for kubectl, Helm charts, bundles and the catalog
// for the Operator Lifecycle Manager, and the plugin of kubectl for Krew. All
// about operators comes from their charts and kustomize folders; what they have
// to supply beside those is in docs/adding-an-operator.md.
//
// The same source gives the same bytes: nothing depends on the clock, on the
// machine or on the folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

const usage = `Usage: dist [flags] COMMAND

  yaml       manifests for kubectl apply
  charts     Helm charts
  bundles    OLM bundles, and their images
  catalog    the OLM catalog of all versions, its image, and manifests to install from it
  image      the manager's image, and its SBOMs
  plugins    the plugin of kubectl as archives, and its manifests for Krew
  local      the manager's image as fairlead.tar, and manifests for kubectl apply, for a cluster that it is loaded into
  vex        which known vulnerabilities do not reach the manager's image, and which do, as of today
  release    all of these but vex, a changelog and checksums
  push image|bundles|catalog|charts
             publish the images that were made, and the charts
  sign       sign the files of the release, and the images that were pushed with what there is to say of them, with cosign
  verify     check these signatures, and that the source makes the same files once more

A VERSION of hack/releases is made from its commit, any other from the files here.

Flags:
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("dist", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	var o options
	flags.StringVar(&o.repo, "C", ".", "the repository")
	flags.StringVar(&o.out, "out", "dist", "the folder that it goes to")
	flags.StringVar(&o.version, "version", "", "the version, such as 0.0.2")
	flags.StringVar(&o.base, "image-base", localBase, "images are called this: with :v<version>, -<package>-bundle:v<version> and -catalog:v<version>")
	flags.StringVar(&o.image, "image", "", "the manager's image (default <image-base>:v<version>)")
	flags.StringVar(&o.operator, "operator", all, "one operator, or all")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "what the manager's image is for")
	forPlugin := flags.String("plugin-platforms", pluginPlatforms, "what kubectl's plugin is for")
	flags.StringVar(&o.pluginURL, "plugin-url", "", "where the plugin's archives will be downloaded from (default <repository>/releases/v<version>)")
	flags.StringVar(&o.govulncheck, "govulncheck", "govulncheck", "vex: the program that looks for known vulnerabilities")
	flags.StringVar(&o.vulnerabilities, "vulnerabilities", "", "vex: where its database is (default https://vuln.go.dev)")
	flags.StringVar(&o.signer.cosign, "cosign", "cosign", "the program that signs and checks")
	flags.StringVar(&o.signer.key, "key", "", "sign: the private key, verify: the public one, as cosign takes them (default: the OIDC token of a CI)")
	flags.StringVar(&o.signer.identity, "identity", "", "verify: whose token it was, where there is no key")
	flags.StringVar(&o.signer.issuer, "issuer", "", "verify: who issued the token")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return errors.New("see dist -h")
	}
	o.pluginPlatforms = strings.Split(*forPlugin, ",")
	o.platforms = strings.Split(*platforms, ",")

	command := strings.Join(flags.Args(), " ")
	if command != "sign" && !strings.HasPrefix(command, "push ") {
		r, err := open(o)
		if err != nil {
			return err
		}
		defer r.close()
		switch command {
		case "yaml":
			return r.writeYAML()
		case "charts":
			return r.writeCharts()
		case "bundles":
			return r.writeBundles()
		case "catalog":
			return r.writeCatalog()
		case "image":
			return r.writeImage()
		case "plugins":
			return r.writePlugins()
		case "vex":
			return r.writeVEX()
		case "local":
			return r.writeLocal()
		case "release":
			return r.writeAll()
		case "verify":
			return r.verify()
		}
	}
	switch command {
	case "sign":
		return o.sign()
	case "push image":
		return o.push("fairlead-v" + o.version + ".tar")
	case "push bundles":
		return o.push("*-bundle-v" + o.version + ".tar")
	case "push catalog":
		return o.push("catalog-v" + o.version + ".tar")
	case "push charts":
		return o.push("*-chart-v" + o.version + ".tar")
	}
	flags.Usage()
	return fmt.Errorf("there is no command %q", command)
}
