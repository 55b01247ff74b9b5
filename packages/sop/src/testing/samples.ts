/** Sample procedures, events and a library for tests. */
import type { SopEvent, SopStep } from '@sluice/sdk'
import type { SopDefinition } from '../definition/definition.ts'
import type { SopLibrary } from '../run/engine-ports.ts'

/** Returns a step that executes without settings. */
export const step = (number: number, members: Partial<SopStep> = {}): SopStep => ({
  number,
  title: `Step ${number}`,
  body: '',
  tools: null,
  requiresConfirmation: false,
  kind: 'execute',
  input: null,
  output: null,
  ...members,
})

/** Returns a definition whose steps are numbered from 1. */
export const sop = (
  name: string,
  { steps = [{}], ...members }: Partial<Omit<SopDefinition, 'steps'>> & { readonly steps?: readonly Partial<SopStep>[] } = {},
): SopDefinition => ({
  name,
  description: '',
  version: '1.0.0',
  agent: 'main',
  priority: 'normal',
  mode: 'auto',
  cooldownSecs: 0,
  maxConcurrent: 1,
  maxWaiting: 100,
  countWaiting: true,
  triggers: [{ type: 'webhook', path: `/${name}`, condition: null }],
  folder: `/sops/${name}`,
  ...members,
  steps: steps.map((members, index) => step(index + 1, members)),
})

/** Returns a webhook event. */
export const event = (topic: string, members: Partial<SopEvent> = {}): SopEvent => ({
  source: 'webhook',
  topic,
  payload: null,
  atMs: Date.UTC(2026, 0, 1),
  by: 'device:1',
  standing: 'operator',
  ...members,
})

/** Returns a library that matches webhook paths. */
export const library = (...definitions: readonly SopDefinition[]): SopLibrary => libraryOf(definitions)

/** Like `library`, for a list that a test changes. */
export const libraryOf = (definitions: readonly SopDefinition[]): SopLibrary => {
  const match = ({ source, topic }: Pick<SopEvent, 'source' | 'topic'>) =>
    definitions.filter(({ triggers }) =>
      triggers.some((trigger) => trigger.type === 'webhook' && source === 'webhook' && trigger.path === topic),
    )
  return {
    match,
    matches: (source, topic) => match({ source, topic }).length > 0,
    webhooks: () => [],
    topics: () => definitions.map(({ name }) => `/${name}`),
    list: () => definitions,
    get: (name) => definitions.find((definition) => definition.name === name),
    loaded: async () => {},
    onReload: () => () => undefined,
  }
}
