package host

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

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
// starts at a place that depends on its ID.
func chooseNet(id string, nodes int, taken []netip.Prefix) (netip.Prefix, error) {
	linkBits := linkBits(nodes)
	count := uint32(1) << (linkBits - addresses.Bits())
	hash, err := hex.DecodeString(id)
	if err != nil || len(hash) < 4 {
		return netip.Prefix{}, fmt.Errorf("cluster ID %q is not 8 hexadecimal digits", id)
	}
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
	address := &net.IPNet{IP: e.HostIP().AsSlice(), Mask: net.CIDRMask(e.Net.Bits(), 32)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: address}); err != nil {
		return fmt.Errorf("give %s the address %s: %w", e.Link(), address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", e.Link(), err)
	}
	return nil
}

// AddPair makes a veth pair of which one end is here and the other one, called
// NodeLink, in the network namespace of a process. That one's hardware address
// is made of its address, so that neighbours, who remember it, still know a
// node that was off meanwhile.
func AddPair(name string, pid int, address netip.Addr) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name = name
	ip := address.As4()
	pair := &netlink.Veth{
		LinkAttrs: attributes,
		PeerName:  NodeLink, PeerNamespace: netlink.NsPid(pid),
		PeerHardwareAddr: append(net.HardwareAddr{2, 0}, ip[:]...), // 2 says that no maker has given it
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
