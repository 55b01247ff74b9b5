/** Makes the guards of a configuration: sandboxed processes and the fetch for public addresses. */
import type { LoadedConfig } from '@sluice/config'
import { configuredAgents, httpSection, sandboxSection } from '@sluice/config'
import type { Clock, Sandbox } from '@sluice/sdk'
import { createPublicAddresses } from '../fetch/public-addresses.ts'
import { createPublicFetch } from '../fetch/public-fetch.ts'
import type { ComponentLogger } from '../log/log.ts'
import { commandsFolder, noteCommands } from '../process/left-commands.ts'
import { createRunBare } from '../process/run-process.ts'
import { commandLimits, createSpawn } from '../process/spawn.ts'
import { proofTargets, proveSandbox } from '../sandbox/prove-sandbox.ts'
import { SandboxInForce } from '../sandbox/sandbox-in-force.ts'
import { filesFolder } from '../workspace/owned-places.ts'
import { settleAttachments } from '../workspace/settle-attachments.ts'
import { createWorkspace } from '../workspace/workspace.ts'
import { closedFolders } from './agents.ts'
import type { HostGuards } from './host.ts'

/** The parts of the daemon that guards are made from; the same for every configuration. */
export interface GuardSources {
  readonly dataDir: string
  readonly clock: Clock
  readonly log: ComponentLogger
  /** The sandbox backends of the snapshot in force. Read at each choice of a sandbox. */
  sandboxes(): readonly Sandbox[]
  /** Resolves when the first snapshot is in force or the daemon stops: processes that a feature starts earlier wait for it. */
  readonly started: Promise<void>
  /** Ends probes when it aborts. */
  readonly signal: AbortSignal
}

export interface Guards extends HostGuards {
  readonly sandbox: SandboxInForce
}

export function createGuards(config: LoadedConfig, sources: GuardSources): Guards {
  const { dataDir, clock, log, sandboxes, started, signal } = sources
  const agents = [...configuredAgents(config, dataDir).values()]
  const workspaces = agents.map(({ workspace }) => workspace)
  const [root = dataDir] = workspaces
  const isolation = config.core(sandboxSection)
  const { enabled, backend, required } = isolation
  const run = createRunBare(clock)
  const sandbox = new SandboxInForce(
    () => ({
      enabled,
      backend,
      required,
      sandboxes: sandboxes(),
      run,
      prove: async (tried, proving) => proveSandbox(tried, { run, signal: proving, workspace: root, ...(await proofTargets(dataDir)) }),
      signal,
    }),
    log.child('sandbox'),
  )
  const chosen = async () => {
    await started
    return (await sandbox.choice()).sandbox
  }
  const publicAddresses = createPublicAddresses({ allowPrivate: config.core(httpSection).allow_private, log: log.child('http') })
  return {
    workspaces,
    workspace: createWorkspace({ root, forbidden: closedFolders(dataDir) }),
    sandbox,
    sandboxChosen: async () => void (await chosen()),
    confines: () => (sandbox.latest()?.sandbox.strength ?? 0) > 0,
    spawn: createSpawn({
      sandbox: chosen,
      required,
      limits: commandLimits(isolation),
      workspaces,
      async settle(workspace) {
        const agent = agents.find((one) => one.workspace === workspace)
        if (agent) await settleAttachments(workspace, filesFolder(dataDir, agent.name))
      },
      closed: closedFolders(dataDir),
      note: noteCommands(commandsFolder(dataDir)),
      log: log.child('spawn'),
      clock,
    }),
    publicAddresses,
    publicFetch: createPublicFetch(publicAddresses),
  }
}
