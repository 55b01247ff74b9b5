// Libraries that run jobs on PostgreSQL, as peers: one job for each message, with the conversation as its key, so that the jobs of one
// conversation run one after the other. Installed from npm into a folder of its own, only when a run asks for it.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { installPeers } from './installed-peers.mjs'

const VERSIONS = { '@dbos-inc/dbos-sdk': '5.3.0', 'graphile-worker': '0.18.0', 'pg-boss': '12.38.0' }
const QUEUE = 'messages'
const POLL_MS = 50
const POOL = 10

/** Installs the libraries unless they are there. Returns their folder. */
export const installJobPeers = () => installPeers('job-peers', VERSIONS)

/** The result of a turn, and the answer of its platform. Both are stored, as Sluice does. */
const resultsOf = ({ answer, turn }) => ({ answer, sent: `wamid.${turn}` })

/** Resolves the waiting message of a job when it ends. */
function waiters() {
  const waiting = new Map()
  return {
    wait: (turn) => new Promise((resolve) => waiting.set(turn, resolve)),
    end(turn) {
      waiting.get(turn)?.()
      waiting.delete(turn)
    },
  }
}

const payloadOf = ({ message, raw, answer, turn }) => ({ raw: raw.toString('base64'), to: message.to, answer, turn })

async function openDbos(load, url, concurrency) {
  const { DBOS } = await load('@dbos-inc/dbos-sdk')
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, systemDatabasePoolSize: POOL, logLevel: 'error' })
  const ended = waiters()
  const work = DBOS.registerWorkflow(
    async (job) => {
      const answer = await DBOS.runStep(async () => resultsOf(job).answer, { name: 'turn' })
      const sent = await DBOS.runStep(async () => resultsOf(job).sent, { name: 'send' })
      setImmediate(ended.end, job.turn)
      return { answer, sent }
    },
    { name: 'message' },
  )
  await DBOS.launch()
  await DBOS.registerQueue(QUEUE, { partitionConcurrency: 1, workerConcurrency: concurrency, minPollingIntervalMs: POLL_MS })
  const keep = (one) =>
    DBOS.startWorkflow(work, { workflowID: one.id, queueName: QUEUE, enqueueOptions: { queuePartitionKey: one.session } })(payloadOf(one))
  return {
    async live(one) {
      const end = ended.wait(one.turn)
      await keep(one)
      await end
    },
    close: () => DBOS.shutdown(),
  }
}

async function openPgBoss(load, url, concurrency) {
  const { PgBoss } = await load('pg-boss')
  const boss = new PgBoss({ connectionString: url, max: POOL, supervise: false, schedule: false, useListenNotify: true })
  boss.on('error', (error) => console.error(error))
  await boss.start()
  await boss.createQueue(QUEUE, { policy: 'key_strict_fifo', notify: true })
  const ended = waiters()
  const options = { batchSize: concurrency, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5, burstWhenBatchFull: true }
  await boss.work(QUEUE, options, async (jobs) => {
    for (const { data } of jobs) setImmediate(ended.end, data.turn)
    return jobs.map(({ data }) => resultsOf(data))
  })
  return {
    async live(one) {
      const end = ended.wait(one.turn)
      await boss.send(QUEUE, payloadOf(one), { singletonKey: one.session })
      await end
    },
    close: () => boss.stop({ graceful: false }),
  }
}

async function openGraphile(load, url, concurrency) {
  const { Logger, makeWorkerUtils, run } = await load('graphile-worker')
  const logger = new Logger(() => (level, text) => level === 'error' && console.error(text))
  const ended = waiters()
  const options = { connectionString: url, maxPoolSize: POOL, logger }
  const utils = await makeWorkerUtils(options)
  await utils.migrate()
  const work = (job) => void setImmediate(ended.end, job.turn)
  const runner = await run({ ...options, concurrency, noHandleSignals: true, pollInterval: POLL_MS, taskList: { message: work } })
  return {
    async live(one) {
      const end = ended.wait(one.turn)
      await utils.addJob('message', payloadOf(one), { queueName: one.session, jobKey: one.id })
      await end
    },
    async close() {
      await runner.stop()
      await utils.release()
    },
  }
}

const PEERS = { dbos: openDbos, 'pg-boss': openPgBoss, graphile: openGraphile }

/** Opens a peer from the folder of its installation. It works on up to `concurrency` messages at a time. */
export function openJobPeer({ name, folder, url, concurrency }) {
  const { resolve } = createRequire(join(folder, 'package.json'))
  const load = (library) => import(pathToFileURL(resolve(library)).href)
  return PEERS[name](load, url, concurrency)
}
