import { setImmediate } from 'node:timers/promises'
import type { Spawn } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { peripheralsSection } from './config.ts'
import { liveBoardNamed } from './live-boards.ts'
import { Probe } from './probe.ts'
import { F401_MEMORY } from './testing/chip-memory.ts'
import { openocdProcess } from './testing/fake-openocd.ts'

const { signal } = new AbortController()
const board = liveBoardNamed('board_c1')
const f401 = openocdProcess(F401_MEMORY)
const probeWith = (spawn: Spawn) => new Probe(testHost({ spawn }), v.parse(peripheralsSection.schema, {}).probe)

describe('Probe', () => {
  test('runs readings in order, also after a failure', async () => {
    const log: string[] = []
    let readings = 0
    const probe = probeWith(async (request) => {
      const number = ++readings
      log.push(`${number} starts`)
      await setImmediate()
      log.push(`${number} ends`)
      if (number === 2) throw new Error('the reading failed')
      return f401(request)
    })
    const outcomes = await Promise.allSettled([probe.info(board, signal), probe.info(board, signal), probe.info(board, signal)])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(log).toEqual(['1 starts', '1 ends', '2 starts', '2 ends', '3 starts', '3 ends'])
  })

  test('ends a waiting reading at once when it is aborted, and never runs it', async () => {
    const first = Promise.withResolvers<void>()
    const abort = new AbortController()
    let readings = 0
    const probe = probeWith(async (request) => {
      readings++
      await first.promise
      return f401(request)
    })
    const running = probe.info(board, signal)
    const aborted = probe.info(board, abort.signal)
    const later = probe.info(board, signal)
    abort.abort()
    await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
    first.resolve()
    await running
    expect(await later).toMatchObject({ architecture: 'Arm Cortex-M4 r0p1' })
    expect(readings).toBe(2)
  })

  test('refuses a reading when sixteen are there already', async () => {
    const first = Promise.withResolvers<void>()
    const probe = probeWith(async (request) => {
      await first.promise
      return f401(request)
    })
    const waiting = Array.from({ length: 16 }, () => probe.info(board, signal))
    await expect(probe.info(board, signal)).rejects.toMatchObject({ code: 'unavailable' })
    first.resolve()
    await Promise.all(waiting)
    await probe.info(board, signal)
  })
})
