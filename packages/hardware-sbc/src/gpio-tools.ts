/** The tools `gpio_sbc_write`, `gpio_sbc_read` and `gpio_sbc_blink` for the header's pins and the activity LED. */
import type { DeviceGuard, Level } from '@sluice/hardware'
import { AppError, type Clock, defineTool, type Tool, type ToolContext, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { Pin, Sbc } from './sbc.ts'

/** The alias of the board. */
export const DEVICE = 'sbc0'
const BLINKS_MAX = 100
const PHASE_MS_MAX = 10_000
/** The longest blinking of one call. The board is closed to other clients for that time. */
const BLINK_MS_MAX = 120_000

const pin = v.pipe(v.union([whole(0, 255), v.literal('led')]), v.description("BCM number, 2 to 27, or 'led' for the activity LED"))
const phase = v.optional(whole(1, PHASE_MS_MAX), 500)

export interface ToolKit {
  readonly sbc: Sbc
  readonly guard: DeviceGuard
  readonly clock: Clock
}

export const gpioTools = (kit: ToolKit): Tool[] => [gpioWrite(kit), gpioRead(kit), gpioBlink(kit)]

const gpioWrite = (kit: ToolKit): Tool =>
  defineTool({
    name: 'gpio_sbc_write',
    description: 'Sets a GPIO pin of this single-board computer high (1) or low (0). The level stays until the next write.',
    input: v.object({ pin, value: v.pipe(v.picklist([0, 1]), v.description('0: low, 1: high')) }),
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    precheck: async () => void (await kit.sbc.detect()),
    available: () => kit.sbc.board !== undefined,
    run: ({ pin, value }, context) =>
      useForWrite(kit, { pin, tool: 'gpio_sbc_write', context, write: { value } }, async () => {
        const remark = await kit.sbc.write(pin, value)
        return `${nameOf(pin)} -> ${stateOf(value)}${remark === undefined ? '' : `\n[${remark}]`}`
      }),
  })

const gpioRead = ({ sbc, guard }: ToolKit): Tool =>
  defineTool({
    name: 'gpio_sbc_read',
    description:
      'Reads the level of a GPIO pin of this single-board computer, and whether it is an input or an output, as JSON. Changes neither.',
    input: v.object({ pin }),
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: false,
    available: () => sbc.board !== undefined,
    run: ({ pin }, context) =>
      guard.use({ device: DEVICE, tool: 'gpio_sbc_read', context }, async () => {
        const { level, ...rest } = await sbc.read(pin)
        return JSON.stringify({ pin, value: level, state: stateOf(level), ...rest })
      }),
  })

const gpioBlink = (kit: ToolKit): Tool =>
  defineTool({
    name: 'gpio_sbc_blink',
    description: `Blinks a GPIO pin or the activity LED of this single-board computer, for at most ${BLINK_MS_MAX / 1000} s. A pin is low afterwards.`,
    input: v.object({
      pin,
      times: v.optional(v.pipe(whole(1, BLINKS_MAX), v.description('How often')), 3),
      on_ms: v.pipe(phase, v.description('Milliseconds high')),
      off_ms: v.pipe(phase, v.description('Milliseconds low')),
    }),
    risk: 'execute',
    decider: 'asker',
    egress: false,
    untrusted: false,
    precheck: async () => void (await kit.sbc.detect()),
    available: () => kit.sbc.board !== undefined,
    async run({ pin, times, on_ms, off_ms }, context) {
      const totalMs = times * (on_ms + off_ms)
      if (totalMs > BLINK_MS_MAX)
        throw new AppError(
          'invalid_request',
          `The blinking takes ${Math.ceil(totalMs / 1000)} s; at most ${BLINK_MS_MAX / 1000} s are allowed`,
        )
      return useForWrite(kit, { pin, tool: 'gpio_sbc_blink', context, write: { times, on_ms, off_ms } }, async () => {
        const done = await blink(kit, pin, { times, onMs: on_ms, offMs: off_ms }, context.signal)
        if (done < times) throw new AppError('aborted', `${nameOf(pin)} blinked ${done} of ${times} times, then the call was aborted`)
        return `Blinked ${nameOf(pin)} ${times} x (${on_ms}/${off_ms} ms)`
      })
    },
  })

interface PinWrite {
  readonly pin: Pin
  readonly tool: string
  readonly context: ToolContext
  /** The data that the call writes, for the audit log. */
  readonly write: Readonly<Record<string, unknown>>
}

/** Checks the pin and then runs `work` under the board's lease, so that a refused write is not recorded in the audit log. */
async function useForWrite({ sbc, guard }: ToolKit, { pin, ...use }: PinWrite, work: () => Promise<string>): Promise<string> {
  const reserved = await sbc.check(pin)
  return guard.use({ device: DEVICE, pins: [reserved], ...use }, work)
}

interface BlinkPattern {
  readonly times: number
  readonly onMs: number
  readonly offMs: number
}

/** Returns how often the pin blinked; fewer times than requested when `signal` aborts. */
async function blink({ sbc, clock }: ToolKit, pin: Pin, { times, onMs, offMs }: BlinkPattern, signal: AbortSignal): Promise<number> {
  const wasLedHeld = sbc.isLedHeld
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
    await sbc.endBlink(pin, wasLedHeld)
  }
  return done
}

const nameOf = (pin: Pin): string => (pin === 'led' ? 'The activity LED' : `GPIO ${pin}`)
const stateOf = (level: Level): string => (level === 1 ? 'HIGH' : 'LOW')
