/** Checks what each agent of `[agents]` has of its own: its workspace, its policy and its models. */
import type { Agent } from '@sluice/agent'
import { plainReasons } from '@sluice/config'
import { shellWord } from '@sluice/kit'
import { MAIN_AGENT } from '@sluice/sdk'
import type { AgentInForce } from '../features/agents.ts'
import type { Guards } from '../features/guards.ts'
import type { Lifecycle } from '../features/lifecycle.ts'
import type { Snapshot } from '../features/snapshot.ts'
import { readWorkspaceIdentity } from '../workspace/workspace-identity.ts'
import { type Check, ok, warn } from './check.ts'
import { checkPolicyLevel, checkShell, PROGRAM_FOLDERS } from './check-config.ts'
import { checkProvider, type TryText, tryTextHere } from './check-provider.ts'
import { checkInWorkspace } from './check-sandbox.ts'
import { checkWorkspace, contains } from './check-workspace.ts'

interface Places {
  readonly dataDir: string
  readonly configFile: string
  /** Sends the short messages to models; default: this process does. */
  readonly tryText?: TryText | undefined
}

/** The parts of a runtime that agents use. */
export interface AgentChecked {
  readonly agent: Pick<Agent, 'testModel'>
  readonly lifecycle: Pick<Lifecycle, 'agents'>
  guards(): Guards
  snapshot(): Snapshot
}

/** Empty for agents whose workspace has no identity file, and that take none. */
export async function checkIdentity({ lifecycle }: Pick<AgentChecked, 'lifecycle'>): Promise<Check[]> {
  const checks: Check[] = []
  for (const { name, agent, workspace } of lifecycle.agents().values()) {
    const accepted = agent.identity_sha256
    const files = await readWorkspaceIdentity(workspace, accepted)
    const waiting = files.filter(({ text }) => text === undefined)
    const used = files.filter(({ text }) => text !== undefined).map((file) => file.name)
    const check = `${name}: identity`
    if (waiting.length > 0) {
      const lines = waiting.map(
        (file) => `${file.name} in ${workspace.root} is not accepted and not in the system prompt; its SHA-256 is ${file.sha256}`,
      )
      const fix = `read each file, then accept these contents: ${acceptCommand(name, files)}`
      // Most workspaces are folders of a project, whose files do not form an identity before an operator has accepted one.
      checks.push(accepted.length > 0 ? warn(check, lines.join('\n'), fix) : ok(check, [...lines, `to use them, ${fix}`].join('\n')))
    } else if (used.length > 0) checks.push(ok(check, `${used.join(', ')} of the workspace`))
    else if (accepted.length > 0) checks.push(ok(check, 'the workspace has no file of the accepted contents'))
  }
  return checks
}

/** Returns the command that accepts the present files, and no earlier content. */
function acceptCommand(agent: string, files: readonly { readonly sha256: string }[]): string {
  const section = agent === MAIN_AGENT ? 'agent' : `agents.${agent}`
  return `sluice config set ${section}.identity_sha256 ${shellWord(JSON.stringify(files.map(({ sha256 }) => sha256)))}`
}

/** Empty without `[agents]`. The name of each check begins with the agent. */
export async function checkAgents(
  runtime: AgentChecked,
  places: Places,
  programFolders: readonly string[] = PROGRAM_FOLDERS,
): Promise<Check[]> {
  const all = [...runtime.lifecycle.agents().values()]
  const others = all.filter(({ name }) => name !== MAIN_AGENT)
  if (others.length === 0) return []
  const own = await Promise.all(others.map((agent) => checkAgent(runtime, agent, places)))
  // With more than one agent, the workspace of the main agent has readers too.
  const readable = await Promise.all(all.map((agent) => checkReadable(agent, places.dataDir, programFolders)))
  return [...own.flat(), ...readable.flat()]
}

async function checkAgent(runtime: AgentChecked, agent: AgentInForce, { dataDir, configFile, tryText }: Places): Promise<Check[]> {
  const { name, policy, workspace, provider } = agent
  const section = `agents.${name}`
  const guards = runtime.guards()
  const { warning } = await guards.sandbox.choice()
  const models = runtime.snapshot().registries.get(name)?.models
  const hasOwnModels = provider !== runtime.lifecycle.agents().get(MAIN_AGENT)?.provider
  const checks = [
    await checkWorkspace(workspace.root, dataDir, configFile, section),
    ...(warning === undefined ? await checkInWorkspace(guards.spawn, workspace.root, section) : []),
    checkPolicyLevel(policy, `${section}.policy`, runtime.snapshot()) ?? ok('policy', policy.level),
    ...shellOf(runtime, agent, `${section}.policy`),
    ...(models && hasOwnModels
      ? await checkProvider(models, { table: `${section}.provider`, tryText: tryText ?? tryTextHere(runtime.agent, name) })
      : []),
  ]
  return checks.map((check) => ({ ...check, check: `${name}: ${check.check}` }))
}

/** Empty in a build without the shell tool. */
export function shellOf(runtime: Pick<AgentChecked, 'snapshot' | 'guards'>, { name, policy }: AgentInForce, section: string): Check[] {
  const { config, registry } = runtime.snapshot()
  if (!registry.tools.has('shell')) return []
  return [checkShell(policy, section, { reasons: plainReasons(config, name), confines: runtime.guards().confines() })]
}

/** Empty where a sandbox hides the workspace from the commands of other agents. Every sandbox hides the data directory. */
async function checkReadable({ name, workspace: { root } }: AgentInForce, dataDir: string, shown: readonly string[]): Promise<Check[]> {
  if (await contains(dataDir, root)) return []
  const isShown = await Promise.all(shown.map((folder) => contains(folder, root)))
  if (!isShown.includes(true)) return []
  const section = name === MAIN_AGENT ? 'agent' : `agents.${name}`
  const detail = `commands of other agents can read ${root}, whatever the sandbox`
  return [warn(`${name}: workspace`, detail, `set [${section}] workspace to a folder elsewhere`)]
}
