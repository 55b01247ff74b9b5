/** The situation of a message: when, where and by whom it was written. The model reads it before the text of the message. */
import type { ModelMessage } from '@sluice/sdk'
import { notesIn } from '../history/message-notes.ts'

const ZONE_OF_THIS_MACHINE = new Intl.DateTimeFormat().resolvedOptions().timeZone

export interface SituationOptions {
  /** Where and by whom the message was written. It is repeated only when it has changed. */
  readonly place: string
  readonly atMs: number
  /** A time zone such as `Europe/Berlin`; that of this machine when absent. */
  readonly zone: string | undefined
  /** The messages before this one. */
  readonly before: readonly ModelMessage[]
}

/** Returns the note for a message. Its time is exact to the minute. */
export function situationNote({ place, atMs, zone = ZONE_OF_THIS_MACHINE, before }: SituationOptions) {
  const last = before.findLast((message) => notesIn(message).place !== undefined)
  const isKnown = last !== undefined && notesIn(last).place === place
  return { situation: `[${timeText(atMs, zone)}${isKnown ? '' : `; ${place}`}]`, place }
}

/** Such as `Sunday 29 November 2026 18:42 Europe/Berlin`. */
function timeText(atMs: number, zone: string): string {
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  const part = Object.fromEntries(format.formatToParts(atMs).map(({ type, value }) => [type, value]))
  return `${part.weekday} ${part.day} ${part.month} ${part.year} ${part.hour}:${part.minute} ${zone}`
}
