/** Makes the fake of a platform fail now and then, and records the outcome of every request that sends. */
import type { FakeProvider, ProviderFault, ProviderRequest } from '@sluice/testkit/fake-provider'
import type { Random } from '@sluice/testkit/random'
import { type FaultName, nameOf } from './history.ts'
import { partsIn } from './marks.ts'
import type { Recorder } from './recorder.ts'

const RETRY_AFTER_HEADERS = { 'retry-after': '1' }
const FAULTS: readonly { readonly name: FaultName; readonly chance: number; readonly fault: ProviderFault }[] = [
  { name: 'limited', chance: 0.02, fault: { fault: 'status', status: 429, headers: RETRY_AFTER_HEADERS } },
  { name: 'away', chance: 0.02, fault: { fault: 'status', status: 503, headers: RETRY_AFTER_HEADERS } },
  { name: 'reset', chance: 0.01, fault: { fault: 'reset' } },
  { name: 'lost', chance: 0.01, fault: { fault: 'lost' } },
  { name: 'slow', chance: 0.03, fault: { fault: 'slow', ms: 3 } },
]
/** The daemon waits 30 seconds after the second such fault and 2 minutes after the third, too long for a run: each part gets one. */
const ONCE_PER_PART: readonly (FaultName | null)[] = ['reset', 'lost']

export interface FaultOptions {
  readonly channel: string
  readonly random: Random
  readonly recorder: Recorder
  isOn(): boolean
  /** Whether the platform refuses every request. */
  isAway(): boolean
  /** The text in a request; default: its body. */
  readonly textIn?: (request: ProviderRequest) => string
}

export function injectFaults(provider: FakeProvider, { channel, random, recorder, isOn, isAway, textIn = bodyOf }: FaultOptions): void {
  /** The fake asks for each request once per kind of fault. */
  const decided = new WeakMap<ProviderRequest, FaultName | null>()
  /** Parts that were sent before. */
  const sentParts = new Set<string>()

  const decide = (request: ProviderRequest): FaultName | null => {
    const parts = partsIn(textIn(request))
    if (parts.length === 0) return null
    const drawn = isAway() ? 'away' : isOn() ? draw(random) : null
    const fault = parts.some((part) => sentParts.has(nameOf(part))) && ONCE_PER_PART.includes(drawn) ? null : drawn
    for (const part of parts) sentParts.add(nameOf(part))
    recorder.see({ type: 'sending', channel, parts, fault })
    return fault
  }
  const faultOf = (request: ProviderRequest): FaultName | null => {
    const known = decided.get(request)
    if (known !== undefined) return known
    const fault = decide(request)
    decided.set(request, fault)
    return fault
  }
  for (const { name, fault } of FAULTS) {
    provider.fail(fault, { times: Number.POSITIVE_INFINITY, matches: (request) => faultOf(request) === name })
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
