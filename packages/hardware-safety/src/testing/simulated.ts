/** Runs the kernel in the test's process, with a simulated robot and a clock that the test advances. */
import { type TestClock, testClock } from '@sluice/testkit/clock'
import * as v from 'valibot'
import type { MoveEnd, Velocity } from '../core/robot-event.ts'
import type { Report } from '../kernel/body.ts'
import { Kernel } from '../kernel/kernel.ts'
import type { KernelMessage, View } from '../kernel/messages.ts'
import { limitsOf } from '../robot-config.ts'
import { robotToml } from '../robot-toml.ts'
import { SimBody, type SimNote } from '../sim/sim-body.ts'

export interface Simulated {
  readonly clock: TestClock
  readonly kernel: Kernel
  readonly body: SimBody
  readonly report: Report
  /** The messages that the kernel sent. */
  readonly sent: readonly KernelMessage[]
  readonly notes: readonly SimNote[]
  /** Requests a movement and advances the clock until it has ended. */
  move(velocity: Partial<Velocity>, amount: number): Promise<MoveEnd>
  look(): Promise<View>
}

const STEP_MS = 5
const STEPS_MAX = 20_000
const QUIET = { noise: 0, dropout: 0 }

export async function simulated(
  toml: { readonly sim?: object; readonly safety?: object; readonly drive?: object } = {},
  latched: string | null = null,
): Promise<Simulated> {
  const config = v.parse(robotToml, { ...toml, sim: { ...QUIET, ...toml.sim } })
  const clock = testClock()
  const sent: KernelMessage[] = []
  const notes: SimNote[] = []
  let body: SimBody | undefined
  let report: Report = () => undefined
  const openBody = async (reportEvent: Report) => {
    report = reportEvent
    body = new SimBody(config, clock, report, { onNote: (note) => void notes.push(note) })
    return body
  }
  const kernel = await Kernel.start({ limits: limitsOf(config), latched }, clock, openBody, (message) => void sent.push(message))
  if (!body) throw new Error('the kernel did not open the robot')
  let id = 0
  const answerTo = async <Message extends KernelMessage>(isIt: (message: KernelMessage) => message is Message): Promise<Message> => {
    for (let step = 0; step < STEPS_MAX; step++) {
      const found = sent.find(isIt)
      if (found) return found
      await clock.advance(STEP_MS)
    }
    throw new Error('the kernel never answered')
  }
  return {
    clock,
    kernel,
    body,
    report,
    sent,
    notes,
    async move(velocity, amount) {
      const move = { id: ++id, velocity: { x: 0, y: 0, turn: 0, ...velocity }, amount, forMs: null }
      kernel.handle({ kind: 'move', move })
      return (await answerTo((message): message is Ended => message.kind === 'ended' && message.end.id === move.id)).end
    },
    async look() {
      const look = ++id
      kernel.handle({ kind: 'look', id: look })
      return (await answerTo((message): message is Seen => message.kind === 'seen' && message.id === look)).view
    },
  }
}

type Ended = Extract<KernelMessage, { kind: 'ended' }>
type Seen = Extract<KernelMessage, { kind: 'seen' }>
