package host

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A Family is one of addresses.
type Family string

// The families, as kind calls them.
const (
	IPv4 Family = "ipv4"
	IPv6 Family = "ipv6"
)

// FamiliesOf are those that a user names: one or both, the preferred one first,
// or "dual" for both with IPv4 first, which is what it means in kind and kubeadm.
func FamiliesOf(names string) ([]Family, error) {
	switch names {
	case "ipv4":
		return []Family{IPv4}, nil
	case "ipv6":
		return []Family{IPv6}, nil
	case "dual", "ipv4,ipv6":
		return []Family{IPv4, IPv6}, nil
	case "ipv6,ipv4":
		return []Family{IPv6, IPv4}, nil
	}
	return nil, fmt.Errorf("%q is none of ipv4, ipv6, dual and ipv6,ipv4", names)
}

// addresses is where the veth pairs' networks are cut from. RFC 2544 sets
// 198.18.0.0/15 aside for networks between devices under test, so neither
// home, office, VPN nor Docker networks are expected in it.
var addresses = netip.MustParsePrefix("198.18.0.0/16")

// linkBits is the size of the network of a cluster with that many nodes: an
// address for each and for the host, network and broadcast.
func linkBits(nodes int) int {
	bits := 30
	for 1<<(32-bits) < nodes+3 {
		bits--
	}
	return bits
}

// chooseNet chooses a network for that many nodes that overlaps with none of
// those taken. The same cluster gets the same one whenever it can: the search
// starts at a place that depends on its ID. With IPv6 all of the ID is in a
// unique local address (RFC 4193), so there is nothing to search.
func chooseNet(family Family, id string, nodes int, taken []netip.Prefix) (netip.Prefix, error) {
	hash, err := hex.DecodeString(id)
	if err != nil || len(hash) < 4 {
		return netip.Prefix{}, fmt.Errorf("cluster ID %q is not 8 hexadecimal digits", id)
	}
	if family == IPv6 {
		address := [16]byte{0xfd, 'l', hash[0], hash[1], hash[2], hash[3]}
		return netip.PrefixFrom(netip.AddrFrom16(address), 64), nil
	}
	linkBits := linkBits(nodes)
	count := uint32(1) << (linkBits - addresses.Bits())
	start := binary.BigEndian.Uint32(hash)
	base := addresses.Addr().As4()
	for i := range count {
		nth := (start + i) % count
		var address [4]byte
		binary.BigEndian.PutUint32(address[:], binary.BigEndian.Uint32(base[:])+nth<<(32-linkBits))
		candidate := netip.PrefixFrom(netip.AddrFrom4(address), linkBits)
		if !overlaps(candidate, taken) {
			return candidate, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("every network in %s is in use", addresses)
}

func overlaps(candidate netip.Prefix, taken []netip.Prefix) bool {
	for _, other := range taken {
		if other.Overlaps(candidate) {
			return true
		}
	}
	return false
}

// networksInUse lists what the host has addresses in or routes to.
func networksInUse() ([]netip.Prefix, error) {
	var used []netip.Prefix
	add := func(n *net.IPNet) {
		if n == nil {
			return
		}
		addr, ok := netip.AddrFromSlice(n.IP)
		ones, _ := n.Mask.Size()
		if ok && ones > 0 { // a default route leads everywhere and says nothing
			used = append(used, netip.PrefixFrom(addr.Unmap(), ones).Masked())
		}
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the host's addresses: %w", err)
	}
	for _, addr := range addrs {
		add(addr.IPNet)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the host's routes: %w", err)
	}
	for _, route := range routes {
		add(route.Dst)
	}
	return used, nil
}

// NodeLink is the name that the inner end of the veth pair is made with.
const NodeLink = "eth0"

// Connect makes the veth pair between the host and the network namespace of a
// process, and gives the host's end its address.
func (e Entry) Connect(pid int) error {
	if err := AddPair(e.Link(), pid, e.NodeIP(0)); err != nil {
		return err
	}
	link, err := netlink.LinkByName(e.Link())
	if err != nil {
		return fmt.Errorf("find %s: %w", e.Link(), err)
	}
	if slices.Contains(e.Families, IPv6) {
		// It belongs to the device, and goes with it.
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+e.Link()+"/disable_ipv6", []byte("0"), 0o644); err != nil {
			return fmt.Errorf("the kernel has no IPv6: %w", err)
		}
	}
	for _, address := range e.HostAddresses() {
		if err := AddAddress(link, address); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", e.Link(), err)
	}
	return nil
}

// AddAddress gives a device an address, which can be used at once: nobody else
// has it, so there is no looking for duplicates.
func AddAddress(link netlink.Link, address netip.Prefix) error {
	added := &netlink.Addr{IPNet: IPNet(address)}
	if address.Addr().Is6() {
		added.Flags = unix.IFA_F_NODAD
	}
	if err := netlink.AddrAdd(link, added); err != nil {
		return fmt.Errorf("give %s the address %s: %w", link.Attrs().Name, address, err)
	}
	return nil
}

// IPNet is a prefix in the older type.
func IPNet(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}

// AddPair makes a veth pair of which one end is here and the other one, called
// NodeLink, in the network namespace of a process. That one's hardware address
// is made of its address, so that neighbours, who remember it, still know a
// node that was off meanwhile.
func AddPair(name string, pid int, address netip.Addr) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	ip := address.AsSlice()
	pair := &netlink.Veth{
		LinkAttrs: attributes,
		PeerName:  NodeLink, PeerNamespace: netlink.NsPid(pid),
		PeerHardwareAddr: append(net.HardwareAddr{2, 0}, ip[len(ip)-4:]...), // 2 says that no maker has given it
	}
	if err := netlink.LinkAdd(pair); err != nil {
		return fmt.Errorf("make the veth pair %s: %w%s", name, err, MissingModule(err, "veth"))
	}
	return nil
}

// MissingModule says what to do when the kernel does not know what it is asked
// for: it loads its modules itself, unless they are not there.
func MissingModule(err error, module string) string {
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return ""
	}
	return fmt.Sprintf(": the kernel has no %[1]s: modprobe %[1]s (on the machine itself, if this is a container; "+
		"after an upgrade of the kernel, restart the machine)", module)
}

// RemoveLink removes the outer end of a veth pair, if it is there. It goes by
// itself with the namespace of the other end, but the kernel takes its time.
func RemoveLink(name string) error {
	link, err := netlink.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	if err := netlink.LinkDel(link); err != nil {
		// Gone in between is as good as removed.
		if _, again := netlink.LinkByName(name); errors.As(again, &netlink.LinkNotFoundError{}) {
			return nil
		}
		return fmt.Errorf("remove %s: %w", name, err)
	}
	return nil
}
