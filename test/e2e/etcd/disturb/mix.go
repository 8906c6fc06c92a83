package disturb

import (
	"math/rand/v2"
	"time"
)

// Facts is what the cluster is and what may be done to it.
type Facts struct {
	// Size is spec.size, to which the cluster also comes back at the end.
	Size int
	// Persistent says that members have volumes that outlive their pods.
	Persistent bool
	// Versions are the versions to upgrade to, in this order; none for no upgrades.
	Versions []string
	// Certificates says that there are certificates to rotate.
	Certificates bool
}

// Mix is the steps that a cluster goes through, spread evenly over a time.
type Mix struct {
	Steps      []Step
	Duration   time.Duration
	Persistent bool
}

// tolerated is how many of the members may be taken at a time: all of them if their data stays,
// otherwise what leaves a quorum. Of a single member without a volume it is none.
func tolerated(members int, dataStays bool) int {
	if dataStays {
		return members
	}
	return (members - 1) / 2
}

// Short is a mix of 80 seconds, or of as long as the cluster takes to be whole after each step: each
// sort of kill once, alone and with the operator, and one of each change of the spec.
func Short(seed uint64, facts Facts) Mix {
	p := plan{rand: rand.New(rand.NewPCG(seed, 0)), facts: facts}
	p.kill(KillProcess, 1, false)
	p.kill(DeletePod, 1, true)
	p.shuffled(p.changes())
	p.steps = append(p.steps, Step{Action: KillOperator})
	p.kill(DeletePod, p.several(), false)
	return p.mix(80 * time.Second)
}

// soakRounds is how many rounds a Soak has, each with at least 3 kills of members, 1 of the
// operator, and one change.
const soakRounds = 10

// Soak is a mix of 20 minutes, with at least 30 kills of members and 10 of the operator.
func Soak(seed uint64, facts Facts) Mix {
	p := plan{rand: rand.New(rand.NewPCG(seed, 0)), facts: facts}
	var changes [][]Step
	for range soakRounds {
		if len(changes) == 0 {
			changes = p.changes()
			p.facts.Versions = nil // each upgrade happens once
			p.rand.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
		}
		with := p.rand.IntN(3) // which of the kills is with the operator's
		p.kill(KillProcess, 1, with == 0)
		p.kill(DeletePod, 1, with == 1)
		p.kill([]Action{KillProcess, DeletePod}[p.rand.IntN(2)], p.several(), with == 2)
		if len(changes) > 0 {
			p.steps = append(p.steps, changes[0]...)
			changes = changes[1:]
		}
	}
	for _, left := range changes { // such as upgrades
		p.steps = append(p.steps, left...)
	}
	return p.mix(20 * time.Minute)
}

// plan is a mix as it is made.
type plan struct {
	rand  *rand.Rand
	facts Facts
	steps []Step
}

func (p *plan) mix(duration time.Duration) Mix {
	return Mix{Steps: p.steps, Duration: duration, Persistent: p.facts.Persistent}
}

// several is a number of members to take at a time, of those that may be taken.
func (p *plan) several() int {
	return 1 + p.rand.IntN(max(1, tolerated(p.facts.Size, p.facts.Persistent)))
}

// kill adds a step, if the cluster survives it.
func (p *plan) kill(action Action, members int, withOperator bool) {
	if members > tolerated(p.facts.Size, p.facts.Persistent) {
		// Nothing may happen to the members, but to the operator.
		p.steps = append(p.steps, Step{Action: KillOperator})
		return
	}
	p.steps = append(p.steps, Step{Action: action, Members: members, First: p.rand.IntN(1 << 10), WithOperator: withOperator})
}

// changes are all that can happen besides kills, each with the steps that belong together. Half
// of them are cut short by the operator's death.
func (p *plan) changes() [][]Step {
	dies := func() bool { return p.rand.IntN(2) == 0 }
	changes := [][]Step{{{Action: KillOperator}}}
	if p.facts.Size < 7 {
		changes = append(changes, []Step{
			{Action: Scale, Size: min(p.facts.Size+2, 7), WithOperator: dies()},
			{Action: Scale, Size: p.facts.Size, WithOperator: dies()},
		})
	}
	if most := tolerated(p.facts.Size, false); p.facts.Persistent && most > 0 {
		changes = append(changes, []Step{{Action: DeleteVolume, Members: 1, First: p.rand.IntN(1 << 10), WithOperator: dies()}})
	}
	if p.facts.Certificates {
		changes = append(changes, []Step{{Action: RotateCertificates, WithOperator: dies()}})
	}
	var upgrades []Step
	for _, version := range p.facts.Versions {
		upgrades = append(upgrades, Step{Action: Upgrade, Version: version, WithOperator: dies()})
	}
	if len(upgrades) > 0 {
		changes = append(changes, upgrades)
	}
	return changes
}

// shuffled adds the steps of changes in an order of chance.
func (p *plan) shuffled(changes [][]Step) {
	p.rand.Shuffle(len(changes), func(i, j int) { changes[i], changes[j] = changes[j], changes[i] })
	for _, change := range changes {
		p.steps = append(p.steps, change...)
	}
}

// Kills is how many kills of members and of the operator a mix has.
func (m Mix) Kills() (members, operators int) {
	for _, s := range m.Steps {
		switch s.Action {
		case KillProcess, DeletePod, DeleteVolume:
			members += s.Members
		case KillOperator:
			operators++
		default: // kills nobody
		}
		if s.WithOperator {
			operators++
		}
	}
	return members, operators
}
