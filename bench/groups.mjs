// The groups of measurements: each runs together and yields some rows of the table.
import { measureAgent } from './measures/agent.mjs'
import { measureBackup } from './measures/backup.mjs'
import { measureCommands } from './measures/commands.mjs'
import { measureFanOut } from './measures/fan-out.mjs'
import { measureFeatureStarts } from './measures/feature-starts.mjs'
import { measureBoards, measureHardwareIdle } from './measures/hardware.mjs'
import { measureAcks, measureIngress, measureIngressMemory, measureMillion, measureRefusals } from './measures/ingress.mjs'
import { measureLists } from './measures/lists.mjs'
import { measureMcpCalls, measureMcpTurns } from './measures/mcp.mjs'
import { measurePdf } from './measures/pdf.mjs'
import { measurePlugins } from './measures/plugins.mjs'
import { measurePostgresIngress, measurePostgresLife } from './measures/postgres.mjs'
import { measurePostgresNodes } from './measures/postgres-nodes.mjs'
import { measureSopEvents, measureSopMatch, measureSopStart } from './measures/procedures.mjs'
import { measureReplies } from './measures/replies.mjs'
import { measureRobot } from './measures/robot.mjs'
import { measureSandboxes } from './measures/sandboxes.mjs'
import { measureSince } from './measures/since.mjs'
import { measureSize } from './measures/size.mjs'
import { measureSmallMachine } from './measures/small-machine.mjs'
import { measureSoak } from './measures/soak.mjs'
import { measureIdleMemory, measureStarts } from './measures/start.mjs'
import { measureTracing } from './measures/tracing.mjs'
import { measureTurnsSince } from './measures/turns-since.mjs'
import { measureWaiting } from './measures/waiting.mjs'
import { measureDuplicates, measureTurns } from './measures/webhook.mjs'
import { AGENT_ROWS, FEATURE_STARTS, POSTGRES_PEERS } from './rows.mjs'

/** The groups of docs/performance.md, which `--write` measures. Together they take about a quarter of an hour. */
export const DOCUMENTED = ['start', 'memory', 'commands', 'webhook', 'ingress', 'sse', 'ws', 'replies']

/** Each `measure` resolves to a list of rounds. A round maps the name of a row to `{ ours, bare?, detail? }`. */
export const GROUPS = [
  { name: 'size', rows: ['size-before-first-turn', 'size-in-all'], measure: measureSize },
  { name: 'start', rows: ['start-minimal', 'start-full', 'first-start-minimal', 'first-start-full'], measure: measureStarts },
  { name: 'feature-starts', rows: FEATURE_STARTS, measure: measureFeatureStarts(FEATURE_STARTS) },
  { name: 'memory', rows: ['idle-memory'], measure: measureIdleMemory },
  { name: 'commands', rows: ['command-version', 'command-config-get'], measure: measureCommands },
  { name: 'webhook', rows: ['webhook-throughput', 'webhook-latency'], measure: measureTurns },
  { name: 'duplicate', rows: ['duplicate-throughput'], measure: measureDuplicates },
  {
    name: 'ingress',
    rows: [
      ...['ingress-1', 'ingress-1-median', 'ingress-16', 'ingress-16-p99', 'ingress-64', 'ingress-64-p99'],
      'ingress-open-p99',
      ...['ingress-peer-1', 'ingress-peer-16', 'ingress-peer-64'],
    ],
    measure: measureIngress,
  },
  { name: 'refusals', rows: ['ingress-refused', 'ingress-duplicate'], measure: measureRefusals },
  { name: 'acks', rows: ['ingress-ack', 'ingress-burst'], measure: measureAcks },
  { name: 'ingress-memory', rows: ['ingress-memory'], measure: measureIngressMemory },
  // Start database servers of their own, so they run only with --only.
  { name: 'postgres-ingress', rows: ['postgres-ingress-16', 'postgres-ingress-64'], measure: measurePostgresIngress, onlyWhenAsked: true },
  {
    name: 'postgres',
    rows: ['postgres-life-32', 'postgres-life-128', 'postgres-wal-accept', 'postgres-wal-life', 'postgres-wal-images', ...POSTGRES_PEERS],
    measure: measurePostgresLife,
    onlyWhenAsked: true,
  },
  { name: 'postgres-nodes', rows: ['postgres-nodes', 'postgres-nodes-both'], measure: measurePostgresNodes, onlyWhenAsked: true },
  // Installs a tokenizer, and with --peers two agents, from npm, so it runs only with --only.
  { name: 'agent', rows: AGENT_ROWS, measure: measureAgent, onlyWhenAsked: true },
  // Needs the build of another commit, so it runs only with --only.
  {
    name: 'since',
    rows: ['since-spread', 'since-start-cpu', 'since-start', 'since-idle-cpu', 'since-idle-memory', 'since-idle-private'],
    measure: measureSince,
    onlyWhenAsked: true,
  },
  // Needs the full profile of another commit, so it runs only with --only.
  { name: 'turns-since', rows: ['turns-since-spread', 'turns-since-cpu'], measure: measureTurnsSince, onlyWhenAsked: true },
  // Takes ten minutes, so it runs only with --only.
  { name: 'million', rows: ['ingress-flat', 'ingress-growth'], measure: measureMillion, onlyWhenAsked: true },
  // Takes half an hour, or the time of --minutes, so it runs only with --only.
  {
    name: 'soak',
    rows: ['soak-signals', 'soak-timers', 'soak-listeners', 'soak-heap', 'soak-lost', 'soak-doubled'],
    measure: measureSoak,
    onlyWhenAsked: true,
  },
  // Writes several gigabytes, so it runs only with --only.
  {
    name: 'lists',
    rows: ['lists-start', 'lists-hot', 'lists-hot-cpu', 'lists-health', 'lists-cold', 'lists-cold-health', 'lists-commands'],
    measure: measureLists,
    onlyWhenAsked: true,
  },
  // Takes half an hour, or the time of --minutes, so it runs only with --only.
  {
    name: 'small-machine',
    rows: ['small-peak', 'small-growth', 'small-killed', 'small-lost', 'small-doubled'],
    measure: measureSmallMachine,
    onlyWhenAsked: true,
  },
  // Writes several gigabytes, so it runs only with --only.
  { name: 'backup', rows: ['backup-ingress', 'backup-restore'], measure: measureBackup, onlyWhenAsked: true },
  { name: 'replies', rows: ['replies-rate', 'replies-order'], measure: measureReplies },
  { name: 'sop-events', rows: ['sop-event', 'sop-event-p99'], measure: measureSopEvents },
  {
    name: 'sop-match',
    rows: [
      ...['sop-match-webhook', 'sop-match-mqtt', 'sop-match-wildcard', 'sop-match-peripheral'],
      ...['sop-match-spread', 'sop-match-daemon', 'sop-load', 'sop-load-memory'],
    ],
    measure: measureSopMatch,
  },
  { name: 'sop-starts', rows: ['sop-start', 'sop-start-ready', 'sop-start-block'], measure: measureSopStart },
  {
    name: 'sop-waiting',
    rows: ['sop-waiting-idle', 'sop-waiting-heap', 'sop-waiting-taken-up', 'sop-waiting-resident'],
    measure: measureWaiting,
  },
  { name: 'sse', rows: ['sse-deliveries', 'sse-latency', 'sse-memory'], measure: (bench) => measureFanOut(bench, 'sse') },
  { name: 'ws', rows: ['ws-deliveries', 'ws-latency', 'ws-memory'], measure: (bench) => measureFanOut(bench, 'ws') },
  { name: 'otel', rows: ['otel-throughput', 'otel-dead', 'otel-slow', 'otel-overloaded', 'otel-hangs'], measure: measureTracing },
  { name: 'plugins', rows: ['plugin-warm', 'plugin-cold'], measure: measurePlugins },
  { name: 'sandbox', rows: ['sandbox-userns', 'sandbox-fsrestrict'], measure: measureSandboxes },
  { name: 'mcp', rows: ['mcp-read', 'mcp-effect'], measure: measureMcpCalls },
  { name: 'mcp-turns', rows: ['mcp-turn'], measure: measureMcpTurns },
  { name: 'hardware', rows: ['board-read', 'board-discovery'], measure: measureBoards },
  { name: 'hardware-idle', rows: ['hardware-start', 'hardware-idle'], measure: measureHardwareIdle },
  { name: 'pdf', rows: ['pdf-text', 'pdf-first', 'pdf-block'], measure: measurePdf },
  { name: 'robot', rows: ['robot-estop', 'robot-killed'], measure: measureRobot },
]
