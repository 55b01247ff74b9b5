/** Validates the results of a board's commands, in either dialect. A result of another shape is an error; no value is guessed. */

import { list, members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import { AppError } from '@sluice/sdk'
import { plainText } from './frame.ts'

/** The description that a board gives of itself. Each member is null when the board does not state it. */
export interface Capabilities {
  /** The pins it can read and write, in ascending order. */
  readonly gpio: readonly number[] | null
  /** The pin of its LED. */
  readonly led: number | null
  /** The name of the board, as in the table of boards. */
  readonly board: string | null
  /** The name and version of its firmware. */
  readonly firmware: string | null
}

const PINS_MAX = 512
const NAME_CHARS_MAX = 64

/** Returns the level of a pin. Throws `upstream` for anything but 0 or 1. */
export function bitOf(name: string, result: unknown): 0 | 1 {
  const value = typeof result === 'object' ? members(result).value : result
  if (value === 0 || value === '0') return 0
  if (value === 1 || value === '1') return 1
  throw new AppError('upstream', `${name} answered ${plainText(JSON.stringify(result) ?? 'nothing')}, which is neither 0 nor 1`)
}

/** Accepts an object, or its JSON text, which one dialect sends. Throws `upstream` for anything else. */
export function capabilitiesOf(name: string, result: unknown): Capabilities {
  const parsed = typeof result === 'string' ? parsedOrUndefined(result) : result
  if (typeof parsed !== 'object' || parsed === null) throw new AppError('upstream', `${name} does not state its capabilities`)
  const { gpio, led_pin, board, firmware } = members(parsed)
  const pins = list(gpio).filter(isPin).slice(0, PINS_MAX)
  return {
    gpio: Array.isArray(gpio) ? [...new Set(pins)].sort((a, b) => a - b) : null,
    led: isPin(led_pin) ? led_pin : null,
    board: shortText(board),
    firmware: shortText(firmware),
  }
}

const isPin = (value: unknown): value is number => Number.isInteger(value) && Number(value) >= 0

const shortText = (value: unknown): string | null => (typeof value === 'string' ? plainText(value).slice(0, NAME_CHARS_MAX) || null : null)
