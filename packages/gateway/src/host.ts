/** Makes the `Host` each feature is given: the same services for all, its own log, keys and secrets. */

import type { Clock, Events, FeatureId, Host, Policy, Services, Spawn, Store, Workspace } from '@sluice/sdk'
import { type SecretBox, secretStore } from '@sluice/store'
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

/** What a configuration change replaces: features with tools are built anew with it. */
export interface HostGuards {
  readonly policy: Policy
  readonly workspace: Workspace
  readonly spawn: Spawn
  readonly publicFetch: Host['publicFetch']
  readonly publicAddresses: Host['publicAddresses']
}

export function createHost(feature: FeatureId, parts: HostParts, guards: HostGuards): Host {
  return {
    feature,
    log: parts.log.child(feature),
    clock: parts.clock,
    fetch: parts.traces.traced(outboundFetch),
    publicFetch: parts.traces.tracedPublic(guards.publicFetch),
    publicAddresses: guards.publicAddresses,
    spawn: guards.spawn,
    companion: startCompanion,
    keyValue: parts.store.keyValue(`feature:${feature}`),
    secrets: secretStore(parts.secrets, parts.store.keyValue(`secret:${feature}`), `secrets.${feature}`),
    events: parts.events,
    policy: guards.policy,
    workspace: guards.workspace,
    dataDir: parts.dataDir,
    rebuild: (reason) => parts.rebuild(feature, reason),
    refresh: (reason) => parts.refresh(feature, reason),
    service: parts.service,
  }
}
