/** Makes what the security sections decide: the policy, the workspace, the sandboxed spawn and the guarded fetch. */
import { getCompileCacheDir } from 'node:module'
import type { LoadedConfig } from '@sluice/config'
import { expandHome, httpSection, policySection, sandboxSection, workspaceRoot } from '@sluice/config'
import type { Clock, Sandbox } from '@sluice/sdk'
import { createPublicAddresses } from '../fetch/public-addresses.ts'
import { createPublicFetch } from '../fetch/public-fetch.ts'
import type { ComponentLogger } from '../log/log.ts'
import { commandLimits } from '../process/command-limits.ts'
import { createRunBare } from '../process/run-bare.ts'
import { createSpawn } from '../process/spawn.ts'
import { proofPlaces, proveSandbox } from '../sandbox/prove-sandbox.ts'
import { createSandboxInForce, type SandboxInForce } from '../sandbox/sandbox-in-force.ts'
import { createWorkspace } from '../workspace/workspace.ts'
import type { HostGuards } from './host.ts'

export interface GuardOptions {
  readonly dataDir: string
  readonly configFile: string
  readonly clock: Clock
  readonly log: ComponentLogger
  /** The backends of the registry in force, asked for at the first use. */
  sandboxes(): readonly Sandbox[]
  readonly signal: AbortSignal
}

export interface Guards extends HostGuards, SandboxInForce {}

export function createGuards(config: LoadedConfig, { dataDir, configFile, clock, log, sandboxes, signal }: GuardOptions): Guards {
  const configured = config.core(policySection)
  // The agent may touch neither the daemon's data (except a workspace inside of it), nor its configuration, nor the compiled code
  // that Node runs.
  const closed = [dataDir, getCompileCacheDir() ?? []].flat()
  const forbidden = [...configured.forbidden_paths, ...closed, configFile]
  const policy = Object.freeze({ ...configured, forbidden_paths: forbidden })
  const isolation = config.core(sandboxSection)
  const { enabled, backend, required } = isolation
  const root = workspaceRoot(config, dataDir)
  const run = createRunBare(clock)
  const inForce = createSandboxInForce(
    () => ({
      enabled,
      backend,
      required,
      sandboxes: sandboxes(),
      run,
      prove: (tried, proving) => proveSandbox(tried, { run, signal: proving, workspace: root, places: proofPlaces(dataDir) }),
      signal,
    }),
    log.child('sandbox'),
  )
  const publicAddresses = createPublicAddresses({ allowPrivate: config.core(httpSection).allow_private, log: log.child('http') })
  return {
    policy,
    workspace: createWorkspace({ root, forbidden: policy.forbidden_paths.map(expandHome) }),
    ...inForce,
    spawn: createSpawn({
      sandbox: async () => (await inForce.sandbox()).sandbox,
      required,
      limits: commandLimits(isolation),
      closed,
      log: log.child('spawn'),
      clock,
    }),
    publicAddresses,
    publicFetch: createPublicFetch(publicAddresses),
  }
}
