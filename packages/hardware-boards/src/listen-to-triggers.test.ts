import type { Sops } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { listenToTriggers } from './listen-to-triggers.ts'

test('lines are open for the boards of loaded triggers, as they change, from when the engine is there', async () => {
  let topics = ['board_b0/temp', 'board_b0/button', 'board_c0/x']
  let reload: (() => void) | undefined
  const services: { sops?: Sops } = {}
  const host = testHost({ services })
  const wanted: string[][] = []
  const registry = {
    listenTo: (signals: ReadonlyMap<string, ReadonlySet<string>>) =>
      void wanted.push([...signals].map(([alias, names]) => `${alias}: ${[...names]}`)),
  }
  const leaving = new AbortController()
  const listening = listenToTriggers(host, registry, leaving.signal)
  await host.advance(1000)
  expect(wanted).toEqual([])
  services.sops = {
    topics: () => topics,
    onReload: (callback: () => void) => {
      reload = callback
      return () => {
        reload = undefined
      }
    },
  } as unknown as Sops
  await host.advance(1000)
  await listening
  topics = []
  reload?.()
  expect(wanted).toEqual([['board_b0: temp,button', 'board_c0: x'], []])
  leaving.abort()
  expect(reload).toBeUndefined()
})
