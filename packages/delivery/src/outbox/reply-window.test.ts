import type { ReplyWindow, StartedReply } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { asAccepted, closedReason } from './reply-window.ts'

const AT_MS = 1_767_225_600_000

const reply = (part: number, answersAtMs: number | undefined = AT_MS): StartedReply => ({
  number: 1,
  channel: 'x',
  account: 'a',
  to: { to: 'ada', replyTo: 'm1' },
  text: 'hi',
  part,
  parts: 9,
  clientId: 'c',
  turnId: null,
  createdAtMs: AT_MS,
  sinceMs: AT_MS,
  attempts: 1,
  ...(answersAtMs !== undefined && { extras: { answersAtMs } }),
})
const channelWith = (replyWindow?: ReplyWindow) => ({
  name: 'x',
  limits: { text: 100, unit: 'utf16' as const, ...(replyWindow && { replyWindow }) },
})

describe('closedReason', () => {
  const closed = channelWith({ seconds: 3600, count: 5, after: 'closed' })

  test('names the time limit after the window and nothing before its end', () => {
    expect(closedReason(reply(1), closed, AT_MS + 3_600_000)).toBeUndefined()
    expect(closedReason(reply(1), closed, AT_MS + 3_600_001)).toBe('x accepts replies to a message for 1 h')
  })

  test('names the largest number for a reply beyond it', () => {
    expect(closedReason(reply(5), closed, AT_MS)).toBeUndefined()
    expect(closedReason(reply(6), closed, AT_MS)).toBe('x accepts 5 replies to a message')
  })

  test.each([90, 120])('writes a window of %d s', (seconds) => {
    expect(closedReason(reply(1), channelWith({ seconds, after: 'closed' }), AT_MS + 1e9)).toContain(seconds === 90 ? '90 s' : '2 min')
  })

  test('closes nothing without a window, for a message that answers none, or where proactive messages are allowed', () => {
    expect(closedReason(reply(1), channelWith(), AT_MS + 1e12)).toBeUndefined()
    const { extras: _, ...unasked } = reply(9)
    expect(closedReason(unasked, closed, AT_MS + 1e12)).toBeUndefined()
    expect(closedReason(reply(9), channelWith({ seconds: 1, count: 1, after: 'proactive' }), AT_MS + 1e12)).toBeUndefined()
  })
})

test('asAccepted drops the quote of a reply beyond the number that the platform accepts', () => {
  const proactive = channelWith({ seconds: 3600, count: 5, after: 'proactive' })
  expect(asAccepted(reply(5), proactive, AT_MS).to).toEqual({ to: 'ada', replyTo: 'm1' })
  expect(asAccepted(reply(6), proactive, AT_MS).to).toEqual({ to: 'ada' })
})

test('a window may depend on the conversation', () => {
  const replyWindow = ({ to }: { readonly to: string }): ReplyWindow => ({ seconds: to === 'ada' ? 60 : 600, after: 'closed' })
  const channel = { name: 'x', limits: { text: 100, unit: 'utf16' as const, replyWindow } }
  expect(closedReason(reply(1), channel, AT_MS + 61_000)).toBe('x accepts replies to a message for 1 min')
  expect(closedReason({ ...reply(1), to: { to: 'group' } }, channel, AT_MS + 61_000)).toBeUndefined()
})
