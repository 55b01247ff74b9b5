// Every row of the table: what it is called, its unit, and the bar it is held to. A row without a bar is for information.
// `ratio` bars hold Sluice's value over the bare server's of the same round; `value` bars hold Sluice's own.

export const ROWS = {
  'start-minimal': { title: 'start to first 200, minimal', unit: 'ms', bar: { ratio: 'at most', limit: 2.2 } },
  'start-full': { title: 'start to first 200, full', unit: 'ms', bar: { ratio: 'at most', limit: 3 } },
  'first-start-minimal': { title: 'first start after an install, minimal', unit: 'ms' },
  'first-start-full': { title: 'first start after an install, full', unit: 'ms' },
  'idle-memory': { title: 'resident memory when idle, minimal', unit: 'MiB', bar: { ratio: 'at most', limit: 1.5 } },
  'command-version': { title: 'sluice --version', unit: 'ms', bar: { ratio: 'at most', limit: 1.3 } },
  'command-config-get': { title: 'sluice config get', unit: 'ms', bar: { ratio: 'at most', limit: 2.5 } },
  'webhook-throughput': { title: 'turns, 16 connections', unit: '/s', bar: { ratio: 'at least', limit: 0.4 } },
  'webhook-latency': { title: 'turn, 1 connection, median', unit: 'ms', bar: { ratio: 'at most', limit: 4 } },
  'duplicate-throughput': { title: 'duplicates, 16 connections', unit: '/s', bar: { ratio: 'at least', limit: 0.7 } },
  'sse-deliveries': { title: 'SSE deliveries', unit: '/s', bar: { ratio: 'at least', limit: 0.8 } },
  'sse-latency': { title: 'SSE latency, paced, p99', unit: 'ms', bar: { ratio: 'at most', limit: 1.3 } },
  'sse-memory': { title: 'memory of an idle SSE client', unit: 'KiB', bar: { ratio: 'at most', limit: 1.3 } },
  'ws-deliveries': { title: 'WebSocket deliveries', unit: '/s', bar: { ratio: 'at least', limit: 0.8 } },
  'ws-latency': { title: 'WebSocket latency, paced, p99', unit: 'ms', bar: { ratio: 'at most', limit: 1.3 } },
  'ws-memory': { title: 'memory of an idle WebSocket client', unit: 'KiB', bar: { ratio: 'at most', limit: 1.3 } },
  'size-before-first-turn': { title: 'code loaded before the first turn', unit: 'kB', bar: { value: 'at most', limit: 700 } },
  'size-in-all': { title: 'minimal profile in all', unit: 'kB', bar: { value: 'at most', limit: 2500 } },
}
