/** Makes the `Host` of a feature: services that all features share, and a log, keys and secrets of its own. */

import {
  type Clock,
  type Events,
  type FeatureId,
  type Host,
  rowOf,
  type Services,
  type Spawn,
  type Store,
  type Workspace,
} from '@sluice/sdk'
import { secretStore } from '@sluice/store'
import type { SecretBox } from '@sluice/store/secret-box'
import type { TraceScope } from '../fetch/outbound-fetch.ts'
import type { ComponentLogger } from '../log/log.ts'
import { startCompanion } from '../process/companion.ts'

/** The parts of the daemon that every feature's host is made from. */
export interface HostServices {
  readonly clock: Clock
  readonly log: ComponentLogger
  readonly store: Store
  readonly secrets: SecretBox
  readonly events: Events
  readonly dataDir: string
  readonly traces: TraceScope
  /** `Host.fetch` of every feature, and the `fetch` of language models. */
  readonly fetch: typeof fetch
}

/** The part of a host that the life cycle of features provides. */
export interface HostControl {
  /** The guards in force: a feature of an earlier configuration must obey what an operator has changed since. */
  guards(): HostGuards
  service<Name extends keyof Services>(name: Name): Services[Name] | undefined
  rebuild(feature: FeatureId, reason: string): void
  refresh(feature: FeatureId, reason: string): void
}

/** The limits that the security sections set. A changed configuration replaces them, also for turns under way. */
export interface HostGuards {
  /** As in `Host`. */
  readonly workspaces: readonly string[]
  readonly workspace: Workspace
  readonly spawn: Spawn
  readonly confines: Host['confines']
  readonly sandboxChosen: Host['sandboxChosen']
  readonly publicFetch: Host['publicFetch']
  readonly publicAddresses: Host['publicAddresses']
}

/** Hardware belongs to its machine: the state that a node stores about it, such as a motor's stop latch, must not affect another node. */
const ownerOf = (feature: FeatureId, { cluster }: Pick<Store, 'cluster'>): string =>
  cluster && rowOf(feature)?.kind === 'hardware' ? `node:${cluster.node}:feature:${feature}` : `feature:${feature}`

export function createHost(feature: FeatureId, services: HostServices, control: HostControl): Host {
  const { clock, log, store, secrets, events, dataDir, traces, fetch } = services
  return {
    feature,
    log: log.child(feature),
    clock,
    fetch,
    publicFetch: traces.tracedPublic((...request) => control.guards().publicFetch(...request)),
    publicAddresses: (...query) => control.guards().publicAddresses(...query),
    spawn: (request) => control.guards().spawn(request),
    confines: () => control.guards().confines(),
    sandboxChosen: () => control.guards().sandboxChosen(),
    companion: startCompanion,
    keyValue: store.keyValue(ownerOf(feature, store)),
    secrets: secretStore(secrets, store.keyValue(`secret:${feature}`), `secrets.${feature}`),
    events,
    get workspaces() {
      return control.guards().workspaces
    },
    get workspace() {
      return control.guards().workspace
    },
    dataDir,
    rebuild: (reason) => control.rebuild(feature, reason),
    refresh: (reason) => control.refresh(feature, reason),
    service: (name) => control.service(name),
  }
}
