import type { FeatureId, Store } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { createHost, type HostControl, type HostServices } from './host.ts'

const ownersOf = (feature: FeatureId, cluster?: Partial<Store['cluster']>): readonly string[] => {
  const owners: string[] = []
  const services = {
    log: { child: () => ({}) },
    store: { keyValue: (owner: string) => owners.push(owner), ...(cluster && { cluster }) },
    traces: { tracedPublic: () => () => {} },
  }
  createHost(feature, services as unknown as HostServices, {} as HostControl)
  return owners
}

test('hardware keeps its keys and values under the name of its node, and other features for the whole cluster', () => {
  expect(ownersOf('hardware-safety', { node: 'node-1' })[0]).toBe('node:node-1:feature:hardware-safety')
  expect(ownersOf('channel-slack', { node: 'node-1' })[0]).toBe('feature:channel-slack')
  expect(ownersOf('hardware-safety')[0]).toBe('feature:hardware-safety')
})
