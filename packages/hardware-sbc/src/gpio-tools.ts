/** `gpio_sbc_read`, `gpio_sbc_write` and `gpio_sbc_blink`: the header's pins and the activity LED. */
import type { DeviceGuard, Level } from '@sluice/hardware'
import { AppError, type Clock, defineTool, type Tool, type ToolContext, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { Pin, Sbc } from './sbc.ts'

const DEVICE = 'sbc0'
const TIMES_MAX = 100
const PHASE_MS_MAX = 10_000
/** Of one call, in which the board is nobody else's. */
const BLINK_MS_MAX = 120_000

const pin = v.pipe(v.union([whole(0, 255), v.literal('led')]), v.description("BCM number, 2 to 27, or 'led' for the activity LED"))
const phase = v.optional(whole(1, PHASE_MS_MAX), 500)

const nameOf = (given: Pin): string => (given === 'led' ? 'The activity LED' : `GPIO ${given}`)
const stateOf = (level: Level): string => (level === 1 ? 'HIGH' : 'LOW')
const withRemark = (text: string, remark: string | undefined): string => (remark === undefined ? text : `${text}\n[${remark}]`)

interface ToolParts {
  readonly sbc: Sbc
  readonly guard: DeviceGuard
  readonly clock: Clock
}

export function gpioTools({ sbc, guard, clock }: ToolParts): Tool[] {
  const available = () => sbc.board !== undefined

  /** What cannot be done is refused before it is on record. */
  const written = async (
    tool: string,
    context: ToolContext,
    what: { readonly pin: Pin; readonly write: object },
    work: () => Promise<string>,
  ) => {
    const pin = await sbc.check(what.pin)
    return guard.use({ device: DEVICE, tool, context, write: { ...what.write }, pins: [pin] }, work)
  }

  return [
    defineTool({
      name: 'gpio_sbc_write',
      description: 'Sets a GPIO pin of this single-board computer high (1) or low (0). The level stays until the next write.',
      input: v.object({ pin, value: v.pipe(v.picklist([0, 1]), v.description('0: low, 1: high')) }),
      risk: 'execute',
      precheck: async () => void (await sbc.detect()),
      available,
      run: ({ pin, value }, context) =>
        written('gpio_sbc_write', context, { pin, write: { value } }, async () =>
          withRemark(`${nameOf(pin)} -> ${stateOf(value)}`, await sbc.write(pin, value)),
        ),
    }),
    defineTool({
      name: 'gpio_sbc_read',
      description:
        'Reads the level of a GPIO pin of this single-board computer, and whether it is an input or an output, as JSON. Changes neither.',
      input: v.object({ pin }),
      risk: 'read',
      available,
      run: ({ pin }, context) =>
        guard.use({ device: DEVICE, tool: 'gpio_sbc_read', context }, async () => {
          const { level, ...rest } = await sbc.read(pin)
          return JSON.stringify({ pin, value: level, state: stateOf(level), ...rest })
        }),
    }),
    defineTool({
      name: 'gpio_sbc_blink',
      description: `Blinks a GPIO pin or the activity LED of this single-board computer, for at most ${BLINK_MS_MAX / 1000} s. A pin is low afterwards.`,
      input: v.object({
        pin,
        times: v.optional(v.pipe(whole(1, TIMES_MAX), v.description('How often')), 3),
        on_ms: v.pipe(phase, v.description('Milliseconds high')),
        off_ms: v.pipe(phase, v.description('Milliseconds low')),
      }),
      risk: 'execute',
      precheck: async () => void (await sbc.detect()),
      available,
      async run({ pin, times, on_ms, off_ms }, context) {
        const ms = times * (on_ms + off_ms)
        if (ms > BLINK_MS_MAX)
          throw new AppError('invalid_request', `That takes ${Math.ceil(ms / 1000)} s; at most ${BLINK_MS_MAX / 1000} s are allowed`)
        return written('gpio_sbc_blink', context, { pin, write: { times, on_ms, off_ms } }, async () => {
          const done = await blink({ sbc, clock, pin, times, onMs: on_ms, offMs: off_ms, signal: context.signal })
          if (done < times) throw new AppError('aborted', `${nameOf(pin)} blinked ${done} of ${times} times, then the call was aborted`)
          return `Blinked ${nameOf(pin)} ${times} x (${on_ms}/${off_ms} ms)`
        })
      },
    }),
  ]
}

interface Blinking {
  readonly sbc: Sbc
  readonly clock: Clock
  readonly pin: Pin
  readonly times: number
  readonly onMs: number
  readonly offMs: number
  readonly signal: AbortSignal
}

/** How often it blinked: fewer times than asked for if it was aborted. */
async function blink({ sbc, clock, pin, times, onMs, offMs, signal }: Blinking): Promise<number> {
  const wasTaken = sbc.isLedTaken
  let done = 0
  try {
    while (done < times && !signal.aborted) {
      await sbc.write(pin, 1)
      await clock.sleep(onMs, signal)
      if (signal.aborted) break
      await sbc.write(pin, 0)
      done++
      await clock.sleep(offMs, signal)
    }
  } finally {
    await sbc.rest(pin, wasTaken)
  }
  return done
}
