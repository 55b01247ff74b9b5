import { startOtlpReceiver } from '@sluice/qa/otlp-receiver'
import { describe, expect, test } from 'vitest'
import { CollectorThread } from './collector-thread.ts'
import { tracesUrl } from './config.ts'
import type { SpanObservation } from './describe-span.ts'

const trace = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null }
const span = (tool: string): SpanObservation => ({ kind: 'tool_call', tool, outcome: 'ok', span: { trace, startMs: 1, tookMs: 1 } })
const targetOf = (url: string) => ({ url: tracesUrl(url), serviceName: 's', instanceId: 'i' })

describe('CollectorThread', () => {
  test('rejects the pending batch on close, and starts another thread for the next', async () => {
    let isHanging = true
    const started = Promise.withResolvers<void>()
    const receiver = await startOtlpReceiver({
      instead() {
        started.resolve()
        return isHanging
      },
    })
    const thread = new CollectorThread(targetOf(receiver.url))
    try {
      const hanging = thread.send([span('a')])
      const rejected = expect(hanging).rejects.toMatchObject({ code: 'unavailable' })
      await started.promise
      thread.close()
      await rejected
      isHanging = false
      await thread.send([span('b')])
      expect(receiver.spans.map(({ name }) => name)).toEqual(['execute_tool b'])
    } finally {
      thread.close()
      await receiver.close()
    }
  })

  test('rejects with the reason that the thread reports', async () => {
    const receiver = await startOtlpReceiver({
      instead(outgoing) {
        outgoing.writeHead(403).end('<html>')
        return true
      },
    })
    const thread = new CollectorThread(targetOf(receiver.url))
    try {
      await expect(thread.send([span('a')])).rejects.toMatchObject({ code: 'upstream', message: 'the collector answered 403' })
      await expect(thread.send([span('a')])).rejects.toMatchObject({ code: 'upstream' })
    } finally {
      thread.close()
      await receiver.close()
    }
  })
})
