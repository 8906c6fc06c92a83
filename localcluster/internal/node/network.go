package node

import (
	"fmt"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
)

// The first node has a bridge, on which are the device that leads to the host
// and one that leads to each further node. So all of them and the host are in
// one network, and reach each other's pods by routes.
const bridgeName = "nodes"

// setUpNetwork gives the node its address and its routes. There is no way out
// of the cluster other than to the host: a connection to anything else is
// refused at once, which is quicker than waiting for an answer that cannot
// come.
func setUpNetwork(spec Spec) error {
	if err := setSysctls(slices.Contains(spec.Families, host.IPv6)); err != nil {
		return err
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("set the loopback device up: %w", err)
	}
	if spec.Link == bridgeName {
		if err := makeBridge(host.NodeLink); err != nil {
			return err
		}
	}
	link, err := netlink.LinkByName(spec.Link)
	if err != nil {
		return fmt.Errorf("find %s: %w", spec.Link, err)
	}
	for _, address := range spec.self().Addresses {
		if err := host.AddAddress(link, address); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", spec.Link, err)
	}
	return addRoutes(spec, link)
}

// setSysctls sets what belongs to the node's network namespace.
func setSysctls(ipv6 bool) error {
	settings := map[string]string{
		"ipv4/ip_forward":              "1",
		"ipv4/conf/all/rp_filter":      "0",
		"ipv4/ip_local_port_range":     "32768 60999", // NodePorts are below
		"ipv4/conf/all/route_localnet": "0",
		// What the bridge carries between others is not for this node's rules.
		"bridge/bridge-nf-call-iptables":  "0",
		"bridge/bridge-nf-call-ip6tables": "0",
	}
	if ipv6 {
		settings["ipv6/conf/all/forwarding"] = "1"
		// Looking for duplicates keeps an address from use for a second or two.
		settings["ipv6/conf/default/accept_dad"] = "0"
		settings["ipv6/conf/"+host.NodeLink+"/accept_dad"] = "0"
	} else {
		settings["ipv6/conf/all/disable_ipv6"] = "1" // no router would answer
	}
	for name, value := range settings {
		if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0o644); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

// makeBridge makes the bridge of the first node, with a device on it.
func makeBridge(device string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	attributes := netlink.NewLinkAttrs()
	// Or it would be that of a device on it, and change with them.
	attributes.Name, attributes.HardwareAddr = bridgeName, link.Attrs().HardwareAddr
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
		return fmt.Errorf("make a bridge: %w%s", err, host.MissingModule(err, "bridge"))
	}
	return plug(device)
}

// plug puts a device on the bridge.
func plug(device string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find %s: %w", bridgeName, err)
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return fmt.Errorf("put %s on the bridge: %w", device, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", device, err)
	}
	return nil
}

func addRoutes(spec Spec, link netlink.Link) error {
	for _, other := range spec.Nodes {
		if other.Name == spec.self().Name {
			continue
		}
		for i, pods := range other.Pods {
			route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: host.IPNet(pods), Gw: other.Addresses[i].Addr().AsSlice()}
			if err := netlink.RouteAdd(route); err != nil {
				return fmt.Errorf("add the route to the pods of %s: %w", other.Name, err)
			}
		}
	}
	for _, services := range spec.serviceNets() {
		// Service addresses are nowhere: kube-proxy's rules replace them. But the
		// node's own connections look for a route first.
		err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: host.IPNet(services), Scope: netlink.SCOPE_LINK})
		if err != nil {
			return fmt.Errorf("add the route to services: %w", err)
		}
		everywhere := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if services.Addr().Is6() {
			everywhere = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		if err := netlink.RouteAdd(&netlink.Route{Dst: host.IPNet(everywhere), Type: unix.RTN_UNREACHABLE}); err != nil {
			return fmt.Errorf("close the way out: %w", err)
		}
	}
	return nil
}
