import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { readIncoming } from './body.ts'

const request = () => Object.assign(new EventEmitter(), { destroyed: false, readableEnded: false })

test('an unfinished body in one-byte pieces takes at most three times its bytes', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const taken = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const incoming = request()
  const bytes = 2 * 1024 * 1024
  const before = taken()
  const body = readIncoming(incoming as unknown as IncomingMessage, bytes)
  for (let n = 0; n < bytes; n++) incoming.emit('data', Buffer.alloc(1))
  const after = taken()
  incoming.emit('end')
  expect(after - before).toBeLessThan(3 * bytes)
  return expect(body).resolves.toHaveLength(bytes)
})
