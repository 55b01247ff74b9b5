/** The tasks by which people look for settings, and the task of each section. Editors group the sections by it. */
import { type FeatureId, type FeatureKind, rowOf } from '@sluice/sdk'

export interface Task {
  readonly title: string
  /** One sentence: the task of a person there. */
  readonly about: string
}

/** In the order in which editors show them. */
export const TASKS = {
  models: { title: 'Models and cost', about: 'Choose the models that answer, hear and speak, and what they may cost.' },
  agents: { title: 'Agents and tools', about: 'Decide what the agents are told, what they remember, and which tools they have.' },
  platforms: { title: 'Chat platforms', about: 'Connect the platforms on which people write to the agent, and word what it says there.' },
  safety: { title: 'Approvals and safety', about: 'Decide what the agent may do alone, who is asked, and how commands are confined.' },
  people: { title: 'People, devices and limits', about: 'Decide how people sign in, and how much each of them may use.' },
  procedures: {
    title: 'Procedures, webhooks and schedules',
    about: 'Start work by procedures, messages of other programs, and at a time.',
  },
  data: { title: 'Data, backup and retention', about: 'Decide where messages are kept, for how long, and when a backup is made.' },
  network: { title: 'Network and address', about: 'Set the address at which the daemon is reached, and the addresses that it may reach.' },
  observability: { title: 'Observability', about: 'Choose what is logged, measured and traced.' },
  hardware: { title: 'Hardware', about: 'Connect boards, adapters and chips.' },
  cluster: { title: 'Cluster', about: 'Let several daemons share one database and its work.' },
  other: { title: 'Other packages', about: 'Set up features that come from packages of their own.' },
} as const satisfies Record<string, Task>

export type TaskId = keyof typeof TASKS

export interface SectionTask {
  readonly task: TaskId
  /** The section in words. */
  readonly title: string
  /** The keys that take effect at the next start; true for all of them. */
  readonly restart?: true | readonly string[]
}

/** The sections of the core, and sections of features whose kind and summary do not say enough; also tables within sections. */
export const SECTION_TASKS: Readonly<Record<string, SectionTask>> = {
  provider: { task: 'models', title: 'The model that answers' },
  cost: { task: 'models', title: 'Prices and spending' },
  transcription: { task: 'models', title: 'Recordings to text' },
  speech: { task: 'models', title: 'Text to speech' },

  agent: { task: 'agents', title: 'The main agent' },
  agents: { task: 'agents', title: 'Further agents' },
  sessions: { task: 'agents', title: 'Conversations' },
  memory: { task: 'agents', title: 'Memory' },
  skills: { task: 'agents', title: 'Skills' },
  mcp: { task: 'agents', title: 'MCP: tools of other programs' },
  browser: { task: 'agents', title: 'The browser of the agent' },
  'tools.shell': { task: 'agents', title: 'Commands in a shell' },
  'tools.http_request': { task: 'agents', title: 'HTTP requests' },
  'tools.web': { task: 'agents', title: 'Web search and pages' },
  plugins: { task: 'agents', title: 'WASM plugins' },

  'gateway.texts': { task: 'platforms', title: 'Texts that people read' },
  'channels_config.chatapp': { task: 'platforms', title: 'WhatsApp, by the Business Cloud API' },
  'channels_config.workchat': { task: 'platforms', title: 'Lark' },
  'channels_config.workchat_cn': { task: 'platforms', title: 'Feishu' },
  'channels_config.chatapp_web': { task: 'platforms', title: 'WhatsApp, as a linked device of a phone' },

  approvals: { task: 'safety', title: 'Questions to people' },
  'security.policy': { task: 'safety', title: 'What tools may do' },
  'security.sandbox': { task: 'safety', title: 'The sandbox of commands' },
  notify: { task: 'safety', title: 'Notices to operators' },
  web_push: { task: 'safety', title: 'Notifications in browsers' },

  limits: { task: 'people', title: 'Limits of each person' },
  'security.webauthn': { task: 'people', title: 'Passkeys' },

  sop: { task: 'procedures', title: 'Procedures' },
  schedule: { task: 'procedures', title: 'Reminders' },
  'channels_config.webhook': { task: 'procedures', title: 'Messages of other programs by webhook' },
  'channels_config.mqtt': { task: 'procedures', title: 'Procedures started over MQTT' },

  store: { task: 'data', title: 'The database', restart: true },
  backup: { task: 'data', title: 'Backups' },
  delivery: { task: 'data', title: 'Queues, retries and retention' },

  gateway: { task: 'network', title: 'Address, pairing and requests', restart: ['host', 'port'] },
  http: { task: 'network', title: 'Private addresses that tools may reach' },

  log: { task: 'observability', title: 'The log', restart: ['format'] },
  observability: { task: 'observability', title: 'Metrics and traces' },

  peripherals: { task: 'hardware', title: 'Boards and adapters' },

  cluster: { task: 'cluster', title: 'This node of a cluster', restart: true },
}

const OF_KIND: Readonly<Partial<Record<FeatureKind, TaskId>>> = {
  channel: 'platforms',
  provider: 'models',
  tool: 'agents',
  hardware: 'hardware',
  sandbox: 'safety',
  observability: 'observability',
}

/**
 * Returns the task of the section or table at this path. A feature without an entry is grouped by its kind. Undefined for a table within a
 * section that has no entry of its own, and for a section of this release that lacks one.
 */
export function taskOfSection(path: string, owner?: FeatureId | 'core'): SectionTask | undefined {
  const entry = Object.hasOwn(SECTION_TASKS, path) ? SECTION_TASKS[path] : undefined
  if (entry || owner === undefined || owner === 'core') return entry
  const row = rowOf(owner)
  if (!row) return { task: 'other', title: path }
  const task = OF_KIND[row.kind]
  return task && { task, title: row.summary }
}
