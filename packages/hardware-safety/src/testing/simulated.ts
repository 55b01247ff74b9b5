/** The safety process's work in this process, with a simulated robot and a clock that stands still until it is moved. */
import { type TestClock, testClock } from '@sluice/testkit/clock'
import * as v from 'valibot'
import type { MoveEnd, Velocity } from '../core/robot-event.ts'
import type { Hear } from '../kernel/body.ts'
import { Kernel } from '../kernel/kernel.ts'
import type { FromKernel, View } from '../kernel/messages.ts'
import { limitsOf } from '../robot-config.ts'
import { robotToml } from '../robot-toml.ts'
import { SimBody, type SimNote } from '../sim/sim-body.ts'

export interface Simulated {
  readonly clock: TestClock
  readonly kernel: Kernel
  readonly body: SimBody
  readonly hear: Hear
  readonly told: readonly FromKernel[]
  readonly notes: readonly SimNote[]
  /** Asks for it and lets time pass until it has ended. */
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
  const told: FromKernel[] = []
  const notes: SimNote[] = []
  let body: SimBody | undefined
  let hear: Hear = () => undefined
  const kernel = await Kernel.start({
    clock,
    limits: limitsOf(config),
    latched,
    async open(heard) {
      hear = heard
      body = new SimBody({ config, clock, hear, note: (note) => void notes.push(note) })
      return body
    },
    tell: (message) => void told.push(message),
  })
  if (!body) throw new Error('there is no robot')
  let id = 0
  const answerTo = async <Message extends FromKernel>(isIt: (message: FromKernel) => message is Message): Promise<Message> => {
    for (let step = 0; step < STEPS_MAX; step++) {
      const found = told.find(isIt)
      if (found) return found
      await clock.advance(STEP_MS)
    }
    throw new Error('it never ends')
  }
  return {
    clock,
    kernel,
    body,
    hear,
    told,
    notes,
    async move(velocity, amount) {
      const move = { id: ++id, velocity: { x: 0, y: 0, turn: 0, ...velocity }, amount, forMs: null }
      kernel.take({ kind: 'move', move })
      return (await answerTo((message): message is Ended => message.kind === 'ended' && message.end.id === move.id)).end
    },
    async look() {
      const look = ++id
      kernel.take({ kind: 'look', id: look })
      return (await answerTo((message): message is Seen => message.kind === 'seen' && message.id === look)).view
    },
  }
}

type Ended = Extract<FromKernel, { kind: 'ended' }>
type Seen = Extract<FromKernel, { kind: 'seen' }>
