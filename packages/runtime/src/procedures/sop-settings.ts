/** The settings of procedures: their folders, the paths that their triggers may name, and their default mode. */
import { homedir } from 'node:os'
import type { LoadedConfig } from '@sluice/config'
import { agentNames, sopSection, sopsFolders, unknownAgent, workspaceRoot, workspaceRoots } from '@sluice/config'
import { ROWS } from '@sluice/sdk'
import type { LibrarySettings } from '@sluice/sop'
import { canAgentWrite } from '../workspace/agent-writable.ts'

export function sopSettings(config: LoadedConfig, dataDir: string): LibrarySettings {
  const section = config.core(sopSection)
  const workspace = workspaceRoot(config, dataDir)
  const names = agentNames(config)
  const [configured, inWorkspace] = sopsFolders(section, { dataDir, workspace, home: homedir() })
  const isAgentWritable = canAgentWrite(configured, { workspaces: workspaceRoots(config, dataDir), dataDir })
  const [first, second] = [
    { folder: configured, isAgentWritable },
    { folder: inWorkspace, isAgentWritable: true },
  ]
  return {
    sources: configured === inWorkspace ? [first] : [first, second],
    defaultMode: section.default_execution_mode,
    pathProblem: createPathRule(section.take_over),
    roleProblem: (path) =>
      messagePaths().has(path)
        ? 'only messages of operators start it, and the agent answers the others; add `role = "listed"` for every sender whom an allowlist names, or `role = "client"` for devices'
        : undefined,
    secretProblem: (names) =>
      names.some((name) => Object.hasOwn(section.secrets ?? {}, name))
        ? undefined
        : `requests are answered 503, because [sop.secrets] has no ${names.join(' and no ')}; run \`sluice config set sop.secrets.${names[0]}\``,
    agentProblem: (agent) => (names.includes(agent) ? undefined : unknownAgent(agent, names)),
  }
}

/** The path of the generic webhook. */
export const WEBHOOK_PATH = '/webhook'

/** The daemon's own `POST` routes, without routes of features. A test compares this list with the served routes. */
export const OWN_POST_ROUTES = [
  '/pair',
  '/api/channel-events',
  '/api/channels/:channel/link',
  '/api/channels/:channel/test',
  '/api/config/preview',
  '/api/turns',
  '/api/attachments',
  '/api/turns/:id/abort',
  '/api/commands',
  '/api/commands/:id/input',
  '/api/deliveries/inbox/:number/replay',
  '/api/deliveries/outbox/:number/replay',
  '/api/deliveries/inbox/:number/discard',
  '/api/deliveries/outbox/:number/discard',
  '/api/approvals/:run/:step',
  '/api/deliveries/inbox/replay',
  '/api/deliveries/outbox/replay',
  '/api/memories/assign',
  '/api/limits/reset',
  '/api/cluster/nodes/:node/drain',
  '/api/cluster/nodes/:node/undrain',
  '/api/cluster/rebalance',
  '/api/models/test',
  '/api/models/offered',
  '/api/hardware/stop',
  '/api/hardware/reset',
  '/api/sop-files/:folder/check',
  '/api/sops/:name/runs',
  '/api/sops/waiting/:folder/accept',
  '/api/sops/adopt',
  '/api/sops/simulate',
  '/api/tools/:name/calls',
  '/api/sops/runs/:id/cancel',
  '/api/sops/runs/:id/replay',
  '/api/pairing/initiate',
  '/api/process/reload',
  '/api/process/restart',
  '/api/process/stop',
  '/api/rooms/:id/try',
  '/api/people/codes',
  '/api/people/links',
  '/api/devices',
  '/api/devices/:id/token/rotate',
]

const POST = 'POST '

const postRoutes = (kind: 'channels' | 'others'): string[] =>
  ROWS.flatMap(([, row]) => ((row.kind === 'channel') === (kind === 'channels') ? (row.routes ?? []) : []))
    .filter((route) => route.startsWith(POST))
    .map((route) => route.slice(POST.length))

/** The paths whose requests are messages for the agent. */
const messagePaths = (): ReadonlySet<string> => new Set([WEBHOOK_PATH, ...postRoutes('channels')])

/** The result returns why no trigger may name a path; undefined: a trigger may name it. */
export function createPathRule(takeOver: boolean): (path: string, hasOwnAuth?: boolean) => string | undefined {
  const messages = messagePaths()
  const served = [...OWN_POST_ROUTES, ...postRoutes('others')].map(patternOf)
  return (path, hasOwnAuth = false) => {
    if (served.some((pattern) => pattern.test(path))) return `the daemon serves POST ${path} itself, so this trigger would never fire`
    if (!messages.has(path)) return undefined
    if (takeOver) return hasOwnAuth ? `POST ${path} has its own authentication; remove \`auth\`` : undefined
    return `POST ${path} brings messages to the agent; procedures may take them if [sop] take_over = true`
  }
}

/** A pattern for a route: `:name` and `{name}` match one part of a path. */
const patternOf = (route: string): RegExp =>
  new RegExp(
    `^${route
      .split('/')
      .map((part) => (/^(?::|\{)/.test(part) ? '[^/]+' : part.replace(/[.*+?^$()|[\]\\{}]/g, '\\$&')))
      .join('/')}$`,
  )
