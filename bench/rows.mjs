// Every row of the table: its title, its unit and its bar. A row without a bar is for information. A `ratio` bar limits the value of
// Sluice divided by the value of the bare server in the same round; a `value` bar limits the value of Sluice.

/** The features that are not in every build. */
const OPTIONAL = [
  'observability-otel',
  'plugins-wasm',
  'sandbox-fsrestrict',
  'sandbox-userns',
  'tool-browser-native',
  'tool-pdf',
  'webauthn',
]
export const FEATURE_STARTS = OPTIONAL.map((id) => `feature-start-${id}`)
/** Libraries that run jobs, with one key for each conversation. */
const PEER_LIMITS = {
  dbos: { name: 'DBOS', limit: 0.25 },
  'pg-boss': { name: 'pg-boss', limit: 0.5 },
  graphile: { name: 'Graphile Worker', limit: 0.5 },
}
export const POSTGRES_PEERS = Object.keys(PEER_LIMITS).map((peer) => `postgres-${peer}`)
/** The tasks of an agent, with the same replies of a scripted model. */
const AGENT_TASKS = {
  short: { title: 'three short messages', unit: 'tokens', bar: { value: 'at most', limit: 9200 } },
  edit: { title: 'an edit of a file, billed', unit: 'tokens' },
  huge: { title: 'huge results, billed', unit: 'tokens', bar: { value: 'at most', limit: 49_630 } },
  steps: { title: 'thirty steps, billed', unit: 'tokens' },
}
const AGENT_PEERS = { pi: 'pi', openclaw: 'OpenClaw' }
const AGENT = {
  ...Object.fromEntries(Object.entries(AGENT_TASKS).map(([task, row]) => [`agent-${task}`, row])),
  'agent-prefix': { title: 'smallest part of a request that the next one repeats', unit: '%', bar: { value: 'at least', limit: 95 } },
  'agent-cpu': { title: 'CPU time of a turn with a scripted model', unit: 'ms' },
  ...Object.fromEntries(
    Object.entries(AGENT_PEERS).flatMap(([peer, name]) =>
      Object.entries(AGENT_TASKS).map(([task, { title, unit }]) => {
        const bar = peer === 'pi' && task === 'huge' ? { bar: { ratio: 'at most', limit: 1.2 } } : {}
        return [`agent-${task}-${peer}`, { title: `${title}, compared with ${name}`, unit, ...bar }]
      }),
    ),
  ),
  'agent-shell-blocks': {
    title: 'shell blocks of public skills that scripts may be, of all',
    unit: '',
    bar: { ratio: 'at least', limit: 1 },
  },
}
export const AGENT_ROWS = Object.keys(AGENT)
const featureStart = (id) => ({ title: `start time added by ${id}`, unit: 'ms', bar: { value: 'at most', limit: 5 } })

export const ROWS = {
  ...AGENT,
  ...Object.fromEntries(OPTIONAL.map((id) => [`feature-start-${id}`, featureStart(id)])),
  'start-minimal': { title: 'start to first 200, minimal', unit: 'ms', bar: { ratio: 'at most', limit: 2.2 } },
  'start-full': { title: 'start to first 200, full', unit: 'ms', bar: { ratio: 'at most', limit: 3 } },
  'first-start-minimal': { title: 'first start after an install, minimal', unit: 'ms' },
  'first-start-full': { title: 'first start after an install, full', unit: 'ms' },
  'idle-memory': { title: 'resident memory when idle, minimal', unit: 'MiB', bar: { ratio: 'at most', limit: 1.5 } },
  'turns-since-spread': { title: 'CPU time of a turn of --base, compared with itself', unit: 'ms' },
  'turns-since-cpu': {
    title: 'CPU time of a turn with a scripted model, compared with --base',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.1 },
  },
  'since-spread': { title: 'the same CPU time of --base, compared with itself', unit: 'ms' },
  'since-start-cpu': { title: 'CPU time to the first 200, compared with --base', unit: 'ms', bar: { ratio: 'at most', limit: 1.02 } },
  'since-start': { title: 'start to first 200, compared with --base', unit: 'ms' },
  'since-idle-cpu': { title: 'CPU time in the first idle seconds, compared with --base', unit: 'ms' },
  'since-idle-memory': { title: 'resident memory when idle, compared with --base', unit: 'MiB', bar: { ratio: 'at most', limit: 1.02 } },
  'since-idle-private': { title: 'private memory when idle, compared with --base', unit: 'MiB', bar: { ratio: 'at most', limit: 1.02 } },
  'command-version': { title: 'sluice --version', unit: 'ms', bar: { ratio: 'at most', limit: 1.3 } },
  'command-config-get': { title: 'sluice config get', unit: 'ms', bar: { ratio: 'at most', limit: 2.5 } },
  'webhook-throughput': { title: 'turns, 16 connections', unit: '/s', bar: { ratio: 'at least', limit: 0.5 } },
  'webhook-latency': { title: 'turn, 1 connection, median', unit: 'ms', bar: { ratio: 'at most', limit: 4 } },
  'duplicate-throughput': { title: 'duplicates, 16 connections', unit: '/s', bar: { ratio: 'at least', limit: 0.7 } },
  'ingress-1': { title: 'messages stored, 1 connection', unit: '/s', bar: { cpu: 'at most', limit: 1.25 } },
  'ingress-1-median': { title: 'message stored, 1 connection, median', unit: 'ms', bar: { ratio: 'at most', limit: 1.2 } },
  'ingress-16': { title: 'messages stored, 16 connections', unit: '/s', bar: { cpu: 'at most', limit: 1.45 } },
  'ingress-16-p99': { title: 'message stored, 16 connections, p99', unit: 'ms' },
  'ingress-64': { title: 'messages stored, 64 connections', unit: '/s', bar: { cpu: 'at most', limit: 1.7 } },
  'ingress-64-p99': { title: 'message stored, 64 connections, p99', unit: 'ms' },
  'ingress-open-p99': {
    title: 'message stored, open loop at half the rate of the slower one, p99',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.5 },
  },
  ...Object.fromEntries(
    [1, 16, 64].map((count) => [
      `ingress-peer-${count}`,
      {
        title: `messages stored, ${count} connections, compared with Node-RED, which checks and stores nothing`,
        unit: '/s',
        bar: { ratio: 'at least', limit: 1 },
      },
    ]),
  ),
  'ingress-refused': { title: 'wrong signatures refused', unit: '/s', bar: { ratio: 'at least', limit: 0.85 } },
  'ingress-duplicate': { title: 'duplicate messages', unit: '/s', bar: { ratio: 'at least', limit: 0.7 } },
  'ingress-ack': { title: 'message stored, 500 a second, p99', unit: 'ms', bar: { value: 'at most', limit: 50 } },
  'ingress-burst': { title: '1,000 messages on 64 connections, p99', unit: 'ms' },
  'ingress-memory': { title: 'memory after 20,000 messages', unit: 'MiB', bar: { ratio: 'at most', limit: 1.2 } },
  'ingress-flat': { title: 'memory after 1,000,000 messages, compared with 100,000', unit: 'MiB', bar: { ratio: 'at most', limit: 1.1 } },
  'ingress-growth': {
    title: 'cost of a message with 1,000,000 stored, compared with none',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.2 },
  },
  'postgres-ingress-16': {
    title: 'messages stored in PostgreSQL, 16 connections, with the processor time of the database',
    unit: '/s',
    bar: { cpu: 'at most', limit: 1.7 },
  },
  'postgres-ingress-64': {
    title: 'messages stored in PostgreSQL, 64 connections, with the processor time of the database',
    unit: '/s',
    bar: { cpu: 'at most', limit: 1.7 },
  },
  ...Object.fromEntries(
    [32, 128].map((count) => [
      `postgres-life-${count}`,
      {
        title: `processor time of PostgreSQL for a message's whole life, ${count} in flight, compared with hand-written SQL`,
        unit: 'µs',
        bar: { ratio: 'at most', limit: 1.3 },
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(PEER_LIMITS).map(([peer, { name, limit }]) => [
      `postgres-${peer}`,
      {
        title: `processor time of PostgreSQL for a message's whole life, 32 in flight, compared with one job in ${name}`,
        unit: 'µs',
        bar: { ratio: 'at most', limit },
      },
    ]),
  ),
  'postgres-wal-accept': { title: 'log of PostgreSQL for an accepted message of 1 KiB', unit: 'KB', bar: { value: 'at most', limit: 1.8 } },
  'postgres-wal-life': {
    title: 'log of PostgreSQL for the whole life of a message of 1 KiB',
    unit: 'KB',
    bar: { value: 'at most', limit: 6.5 },
  },
  'postgres-wal-images': { title: 'the same, begun right after a checkpoint, with images of pages', unit: 'KB' },
  'postgres-nodes': {
    title: 'processor time of two nodes for a whole message, compared with one',
    unit: 'µs',
    bar: { ratio: 'at most', limit: 1.1 },
  },
  'postgres-nodes-both': {
    title: 'the same, with the processor time of PostgreSQL',
    unit: 'µs',
    bar: { ratio: 'at most', limit: 1.1 },
  },
  'backup-ingress': {
    title: 'message stored during a backup of 1 GB, compared with none, p99',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.5 },
  },
  'backup-restore': { title: 'restore of 1 GB, compared with a plain copy', unit: 'MB/s', bar: { value: 'at least', limit: 100 } },
  'soak-signals': { title: 'abort signals gained since minute 5 of a soak', unit: '', bar: { value: 'at most', limit: 5 } },
  'soak-timers': { title: 'timers gained', unit: '', bar: { value: 'at most', limit: 5 } },
  'soak-listeners': { title: 'listeners gained', unit: '', bar: { value: 'at most', limit: 5 } },
  'soak-heap': { title: 'heap gained in 10 minutes', unit: 'MiB', bar: { value: 'at most', limit: 1 } },
  'soak-lost': { title: 'messages without a reply', unit: '', bar: { value: 'at most', limit: 0 } },
  'soak-doubled': { title: 'messages with several replies', unit: '', bar: { value: 'at most', limit: 0 } },
  'replies-rate': { title: 'replies to a platform that answers in 250 ms', unit: '/s', bar: { value: 'at least', limit: 200 } },
  'replies-order': { title: 'replies out of order within their conversation', unit: '', bar: { value: 'at most', limit: 0 } },
  'small-peak': {
    title: 'highest resident memory of 500,000 messages in 512 MB, with 400 subscribers',
    unit: 'MiB',
    bar: { value: 'at most', limit: 300 },
  },
  'small-growth': { title: 'resident memory gained in 10 minutes of them', unit: 'MiB', bar: { value: 'at most', limit: 2 } },
  'small-killed': { title: 'kills for want of memory', unit: '', bar: { value: 'at most', limit: 0 } },
  'small-lost': { title: 'messages without a reply', unit: '', bar: { value: 'at most', limit: 0 } },
  'small-doubled': { title: 'messages with several replies', unit: '', bar: { value: 'at most', limit: 0 } },
  'lists-start': {
    title: 'start with a million rows in each table, compared with none',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.2 },
  },
  'lists-hot': { title: 'the slowest list of the API with any filter, two pages', unit: 'ms', bar: { value: 'at most', limit: 100 } },
  'lists-hot-cpu': { title: 'processor time of the list that takes most of it', unit: 'ms', bar: { value: 'at most', limit: 100 } },
  'lists-health': { title: 'longest wait of /health meanwhile', unit: 'ms', bar: { value: 'at most', limit: 50 } },
  'lists-cold': { title: 'the slowest list, read from the disk', unit: 'ms' },
  'lists-cold-health': {
    title: 'longest wait of /health while lists are read from the disk',
    unit: 'ms',
    bar: { value: 'at most', limit: 50 },
  },
  'lists-commands': {
    title: 'processor time of the slowest list of the command line with any filter, beyond the same with an empty store',
    unit: 'ms',
    bar: { value: 'at most', limit: 100 },
  },
  'sop-event': { title: 'event with 100 procedures, compared with 1, median', unit: 'ms', bar: { ratio: 'at most', limit: 1.2 } },
  'sop-event-p99': { title: 'event with 100 procedures, compared with 1, p99', unit: 'ms', bar: { ratio: 'at most', limit: 1.2 } },
  'sop-match-webhook': { title: 'path found in 10,000 procedures, compared with 10', unit: 'ns', bar: { ratio: 'at most', limit: 1.5 } },
  'sop-match-mqtt': { title: 'topic found in 10,000 procedures, compared with 10', unit: 'ns', bar: { ratio: 'at most', limit: 1.5 } },
  'sop-match-wildcard': { title: 'filter found in 10,000 procedures, compared with 10', unit: 'ns', bar: { ratio: 'at most', limit: 1.5 } },
  'sop-match-peripheral': {
    title: 'signal found in 10,000 procedures, compared with 10',
    unit: 'ns',
    bar: { ratio: 'at most', limit: 1.5 },
  },
  'sop-match-spread': {
    title: 'the slowest of these kinds, events for any of 10,000, compared with 10',
    unit: 'ns',
    bar: { ratio: 'at most', limit: 1.5 },
  },
  'sop-match-daemon': {
    title: 'request refused by any of 10,000 procedures, compared with 10',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.5 },
  },
  'sop-load': { title: '10,000 procedures loaded', unit: 'ms' },
  'sop-load-memory': { title: 'memory of a loaded procedure', unit: 'KiB' },
  'sop-start': { title: 'start to first 200 with 10,000 procedures, compared with none', unit: 'ms' },
  'sop-start-ready': { title: 'start to every procedure loaded, with 10,000 procedures, compared with none', unit: 'ms' },
  'sop-start-block': { title: 'longest block of a start with 10,000 procedures', unit: 'ms', bar: { value: 'at most', limit: 100 } },
  'sop-waiting-idle': {
    title: 'idle CPU with 1,600 waiting runs, compared with none',
    unit: '% of a core',
    bar: { value: 'at most', limit: 1 },
  },
  'sop-waiting-heap': { title: 'heap of a waiting run', unit: 'KiB', bar: { value: 'at most', limit: 4 } },
  'sop-waiting-taken-up': { title: 'heap of a waiting run, after a restart', unit: 'KiB', bar: { value: 'at most', limit: 4 } },
  'sop-waiting-resident': { title: 'resident memory of a waiting run, after a restart', unit: 'KiB' },
  'sse-deliveries': { title: 'SSE deliveries', unit: '/s', bar: { ratio: 'at least', limit: 0.8 } },
  'sse-latency': { title: 'SSE latency, paced, p99', unit: 'ms', bar: { ratio: 'at most', limit: 1.3 } },
  'sse-memory': { title: 'memory of an idle SSE client', unit: 'KiB', bar: { ratio: 'at most', limit: 1.3 } },
  'ws-deliveries': { title: 'WebSocket deliveries', unit: '/s', bar: { ratio: 'at least', limit: 0.8 } },
  'ws-latency': { title: 'WebSocket latency, paced, p99', unit: 'ms', bar: { ratio: 'at most', limit: 1.3 } },
  'ws-memory': { title: 'memory of an idle WebSocket client', unit: 'KiB', bar: { ratio: 'at most', limit: 1.3 } },
  'pdf-text': { title: 'text of a PDF of 100 pages', unit: 'ms', bar: { ratio: 'at most', limit: 1.3 } },
  'pdf-first': { title: 'text of the same PDF, first read', unit: 'ms' },
  'pdf-block': { title: 'longest block while PDFs are read', unit: 'ms', bar: { value: 'at most', limit: 50 } },
  'otel-throughput': {
    title: 'turns with tracing, 16 connections, compared with none',
    unit: '/s',
    bar: { ratio: 'at least', limit: 0.9 },
  },
  'otel-dead': {
    title: 'turn traced to a dead collector, median, compared with no tracing',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.05 },
  },
  'otel-slow': { title: 'turn traced to a slow collector', unit: 'ms', bar: { ratio: 'at most', limit: 1.05 } },
  'otel-overloaded': { title: 'turn traced to a collector that answers 503', unit: 'ms', bar: { ratio: 'at most', limit: 1.05 } },
  'otel-hangs': { title: 'turn traced to a collector that never answers', unit: 'ms', bar: { ratio: 'at most', limit: 1.05 } },
  'plugin-warm': {
    title: 'call of a plugin, 1 KiB in and out, compared with plain JavaScript',
    unit: 'µs',
    bar: { ratio: 'at most', limit: 5 },
  },
  'plugin-cold': { title: 'first call of a plugin, compared with a bare worker', unit: 'ms', bar: { value: 'at most', limit: 50 } },
  'sandbox-userns': { title: '`true` in user namespaces, compared with no sandbox', unit: 'ms', bar: { ratio: 'at most', limit: 4 } },
  'sandbox-fsrestrict': { title: '`true` under Landlock, compared with no sandbox', unit: 'ms', bar: { ratio: 'at most', limit: 4 } },
  'mcp-read': { title: 'read tool of an MCP server, compared with the bare SDK client', unit: 'ms', bar: { ratio: 'at most', limit: 1.5 } },
  'mcp-effect': {
    title: 'effect through an MCP server, compared with a native effect and 1.5 calls of the bare SDK client',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.1 },
  },
  'mcp-turn': {
    title: 'turn with 3 MCP servers of 20 tools, median, compared with none',
    unit: 'ms',
    bar: { ratio: 'at most', limit: 1.2 },
  },
  'board-read': { title: 'pin read over a serial port, compared with bare serialport', unit: 'ms', bar: { ratio: 'at most', limit: 1.5 } },
  'board-discovery': { title: '3 boards discovered', unit: 'ms', bar: { value: 'at most', limit: 2000 } },
  'hardware-start': { title: 'start time added by hardware', unit: 'ms', bar: { value: 'at most', limit: 5 } },
  'hardware-idle': { title: 'memory added by hardware, nothing connected', unit: 'MiB', bar: { value: 'at most', limit: 1 } },
  'robot-estop': { title: 'emergency stop to motors halted, main loop blocked for 1 s', unit: 'ms', bar: { value: 'at most', limit: 20 } },
  'robot-killed': { title: 'daemon killed to motors halted', unit: 'ms' },
  'size-before-first-turn': { title: 'code loaded before the first turn', unit: 'kB', bar: { value: 'at most', limit: 700 } },
  'size-in-all': { title: 'all code of the minimal profile', unit: 'kB', bar: { value: 'at most', limit: 5000 } },
}
