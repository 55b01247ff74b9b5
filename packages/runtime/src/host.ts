/** Makes the `Host` each feature is given: the same services for all, its own log, keys and secrets. */

import type { Clock, Events, FeatureId, Host, Policy, Services, Spawn, Store, Workspace } from '@sluice/sdk'
import { secretStore } from '@sluice/store'
import type { SecretBox } from '@sluice/store/secret-box'
import { startCompanion } from './companion.ts'
import type { ComponentLogger } from './log.ts'
import { outboundFetch } from './outbound-fetch.ts'
import type { TraceScope } from './trace-scope.ts'

export interface HostParts {
  readonly clock: Clock
  readonly log: ComponentLogger
  readonly store: Store
  readonly secrets: SecretBox
  readonly events: Events
  readonly dataDir: string
  /** What the registry of the moment offers. */
  service<Name extends keyof Services>(name: Name): Services[Name] | undefined
  rebuild(feature: FeatureId, reason: string): void
  refresh(feature: FeatureId, reason: string): void
  readonly traces: TraceScope
}

/** What the security sections decide. A configuration change replaces it, for the turns that are under way too. */
export interface HostGuards {
  readonly policy: Policy
  readonly workspace: Workspace
  readonly spawn: Spawn
  readonly publicFetch: Host['publicFetch']
  readonly publicAddresses: Host['publicAddresses']
}

/** `guards` returns those in force: a feature of an earlier configuration must not act by what an operator has changed since. */
export function createHost(feature: FeatureId, parts: HostParts, guards: () => HostGuards): Host {
  return {
    feature,
    log: parts.log.child(feature),
    clock: parts.clock,
    fetch: parts.traces.traced(outboundFetch),
    publicFetch: parts.traces.tracedPublic((...request) => guards().publicFetch(...request)),
    publicAddresses: (...query) => guards().publicAddresses(...query),
    spawn: (request) => guards().spawn(request),
    companion: startCompanion,
    keyValue: parts.store.keyValue(`feature:${feature}`),
    secrets: secretStore(parts.secrets, parts.store.keyValue(`secret:${feature}`), `secrets.${feature}`),
    events: parts.events,
    get policy() {
      return guards().policy
    },
    get workspace() {
      return guards().workspace
    },
    dataDir: parts.dataDir,
    rebuild: (reason) => parts.rebuild(feature, reason),
    refresh: (reason) => parts.refresh(feature, reason),
    service: parts.service,
  }
}
