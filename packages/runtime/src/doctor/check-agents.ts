/** Checks what each agent of `[agents]` has of its own: its workspace, its policy and its models. */
import { MAIN_AGENT } from '@sluice/sdk'
import type { AgentInForce } from '../features/agents.ts'
import type { OpenRuntime } from '../open-runtime.ts'
import { type Check, ok, warn } from './check.ts'
import { PROGRAM_FOLDERS } from './check-config.ts'
import { checkProvider } from './check-provider.ts'
import { checkInWorkspace } from './check-sandbox.ts'
import { checkWorkspace, contains } from './check-workspace.ts'

interface Places {
  readonly dataDir: string
  readonly configFile: string
}

/** Empty without `[agents]`. The name of each check begins with the agent. */
export async function checkAgents(runtime: OpenRuntime, places: Places): Promise<Check[]> {
  const agents = [...runtime.lifecycle.agents().values()].filter(({ name }) => name !== MAIN_AGENT)
  const checks = await Promise.all(agents.map((agent) => checkAgent(runtime, agent, places)))
  return checks.flat()
}

async function checkAgent(runtime: OpenRuntime, agent: AgentInForce, { dataDir, configFile }: Places): Promise<Check[]> {
  const { name, policy, workspace, provider } = agent
  const section = `agents.${name}`
  const guards = runtime.guards()
  const { warning } = await guards.sandbox.choice()
  const models = runtime.snapshot().registries.get(name)?.models
  const hasOwnModels = provider !== runtime.lifecycle.agents().get(MAIN_AGENT)?.provider
  const checks = [
    await checkWorkspace(workspace.root, dataDir, configFile, section),
    ...(await checkReadable(workspace.root, section)),
    ...(warning === undefined ? await checkInWorkspace(guards.spawn, workspace.root, section) : []),
    policy.level === 'full'
      ? warn('policy', 'the agent acts without asking for approval', `set [${section}.policy] level = "supervised"`)
      : ok('policy', policy.level),
    ...(models && hasOwnModels ? await checkProvider(models, `${section}.provider`) : []),
  ]
  return checks.map((check) => ({ ...check, check: `${name}: ${check.check}` }))
}

/** Empty where a sandbox hides the workspace from the commands of other agents. */
async function checkReadable(root: string, section: string): Promise<Check[]> {
  const isShown = await Promise.all(PROGRAM_FOLDERS.map((folder) => contains(folder, root)))
  if (!isShown.includes(true)) return []
  return [
    warn(
      'workspace',
      `commands of other agents can read ${root}, whatever the sandbox`,
      `set [${section}] workspace to a folder elsewhere`,
    ),
  ]
}
