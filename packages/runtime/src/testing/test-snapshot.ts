/** A snapshot for tests of the packages around the runtime: no features, default settings, and the given members. */
import { gatewaySection, type LoadedConfig } from '@sluice/config'
import * as v from 'valibot'
import type { Snapshot } from '../features/snapshot.ts'

/** A configuration in which every core section has its defaults. */
const DEFAULTS: Pick<LoadedConfig, 'core' | 'hasCore' | 'leftOut'> = {
  core: ({ schema }) => v.parse(schema, {}),
  hasCore: () => false,
  leftOut: [],
}

export function testSnapshot(members: Partial<Snapshot> = {}): Snapshot {
  const observe: Snapshot['observe'] = members.observe ?? (() => {})
  return {
    version: 1,
    config: DEFAULTS as LoadedConfig,
    gateway: v.parse(gatewaySection.schema, {}),
    instances: [],
    registry: {
      tools: new Map(),
      offered: [],
      models: {
        labels: [],
        load: () => Promise.reject(new Error('a test snapshot has no models')),
        settings: () => undefined,
        limits: () => [],
        window: () => ({ tokens: 32_000, source: 'default' }),
        findWindow: async () => {},
        learntTokens: () => undefined,
        learnWindow: () => {},
        offered: () => undefined,
        loadForTest: () => Promise.reject(new Error('a test snapshot has no models')),
      },
      prompt: () => '',
      observe,
    },
    registries: new Map(),
    routes: [],
    sockets: [],
    stubs: [],
    channels: [],
    features: [],
    tools: [],
    observers: [],
    models: ['offline:echo'],
    metricsLoopbackOnly: false,
    wantsTraces: false,
    links: () => [],
    observe,
    service: () => undefined,
    ...members,
  }
}
