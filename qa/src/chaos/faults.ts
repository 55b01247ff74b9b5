/** Makes a provider fail now and then, and tells of every request that sends what became of it. */
import type { FakeProvider, ProviderFault, ProviderRequest } from '@sluice/testkit/fake-provider'
import { type ChannelName, type FaultName, nameOf } from './history.ts'
import { partsIn } from './marks.ts'
import type { Random } from './random.ts'
import type { Recorder } from './recorder.ts'

const COME_AGAIN = { 'retry-after': '1' }
const FAULTS: readonly { readonly name: FaultName; readonly chance: number; readonly fault: ProviderFault }[] = [
  { name: 'limited', chance: 0.02, fault: { fault: 'status', status: 429, headers: COME_AGAIN } },
  { name: 'away', chance: 0.02, fault: { fault: 'status', status: 503, headers: COME_AGAIN } },
  { name: 'reset', chance: 0.01, fault: { fault: 'reset' } },
  { name: 'lost', chance: 0.01, fault: { fault: 'lost' } },
  { name: 'slow', chance: 0.03, fault: { fault: 'slow', ms: 3 } },
]
/** The second time these make the daemon wait half a minute, the third time two: no run has so much patience. */
const NO_TIME: readonly (FaultName | null)[] = ['reset', 'lost']

export interface MeddleOptions {
  readonly channel: ChannelName
  readonly random: Random
  readonly recorder: Recorder
  isOn(): boolean
  /** Whether every request meets a platform that is away. */
  isAway(): boolean
  /** What a request says; default: its body. */
  readonly textIn?: (request: ProviderRequest) => string
}

export function meddle(provider: FakeProvider, { channel, random, recorder, isOn, isAway, textIn = bodyOf }: MeddleOptions): void {
  /** A request is asked about once for each fault there is. */
  const decided = new WeakMap<ProviderRequest, FaultName | null>()
  /** Parts that were sent before. */
  const met = new Set<string>()

  const decide = (request: ProviderRequest): FaultName | null => {
    const parts = partsIn(textIn(request))
    if (parts.length === 0) return null
    const drawn = isAway() ? 'away' : isOn() ? draw(random) : null
    const fault = parts.some((part) => met.has(nameOf(part))) && NO_TIME.includes(drawn) ? null : drawn
    for (const part of parts) met.add(nameOf(part))
    recorder.see({ type: 'sending', channel, parts, fault })
    return fault
  }
  const fateOf = (request: ProviderRequest): FaultName | null => {
    const known = decided.get(request)
    if (known !== undefined) return known
    const fate = decide(request)
    decided.set(request, fate)
    return fate
  }
  for (const { name, fault } of FAULTS) {
    provider.fail(fault, { times: Number.POSITIVE_INFINITY, matches: (request) => fateOf(request) === name })
  }
}

function draw(random: Random): FaultName | null {
  let left = random.next()
  for (const { name, chance } of FAULTS) {
    if (left < chance) return name
    left -= chance
  }
  return null
}

const bodyOf = ({ body }: ProviderRequest): string => body.toString()
