/** Rules for messages that arrive over a connection the channel keeps open. */
import { AppError, type Deliver } from '@sluice/sdk'
import { expect } from 'vitest'
import type { ListenSubject } from '../channel-subject.ts'
import type { Rules } from '../rules.ts'
import { expectAddressed } from './addressed.ts'
import type { Bench } from './bench.ts'
import { listened } from './listened.ts'

export function listenRules(bench: Bench, subject: ListenSubject): Rules {
  const { expect: golden } = subject
  const listen = (deliver: Deliver, enough: number) => listened(bench, subject, { deliver, enough })
  const nothing = async () => undefined

  return {
    'listen delivers the expected messages': async () => {
      expect((await listen(nothing, golden.length)).delivered).toEqual(golden)
      for (const message of golden) expectAddressed(message)
    },

    'a message that is listened for has the time from which its reply window counts': async () => {
      if (!bench.channel().limits.replyWindow) return
      for (const { id, sentAtMs } of (await listen(nothing, golden.length)).delivered) expect(sentAtMs, `sentAtMs of ${id}`).toBeDefined()
    },

    'listen resolves promptly after an abort, with or without messages': async () => {
      expect((await listen(nothing, golden.length)).ended).toBe('resolved')
      expect((await listen(nothing, 0)).ended).toBe('resolved')
    },

    'a failed delivery causes no unhandled rejection': async () => {
      const { ended } = await listen(() => Promise.reject(new AppError('unavailable', 'the disk is full')), 1)
      if (ended !== 'resolved') expect(ended).toBeInstanceOf(AppError)
    },
  }
}
