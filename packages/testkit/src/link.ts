/**
 * The network between a daemon and the servers of a test, which a test cuts and restores. A server that starts inside `through` is
 * reached only by a proxy of the link, also at the addresses that it gives to its clients.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { createServer, connect as openSocket, type Server, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { threadId } from 'node:worker_threads'

/**
 * How a cut looks to both ends. `reset`: open connections break, and nothing accepts others. `silent`: open connections stay
 * open and carry nothing more, also after the cut; others are accepted and carry nothing.
 */
export type Cut = 'reset' | 'silent'

/** Below the ports that a system gives to outgoing connections, so that a proxy gets its port back after a cut. */
const PORTS = { first: 20_000, count: 12_000 }
/** While a proxy exists, its port of this address is taken, so that the links of other processes leave the port alone during a cut. */
const CLAIM_ADDRESS = '127.0.0.2'
/** Each thread begins at another port. */
let tried = process.pid * 101 + threadId

/** A connection of a client, and its continuation to the server, which a connection that was opened in silence does not have. */
interface Pair {
  readonly client: Socket
  readonly server: Socket | undefined
}

interface Proxy {
  readonly port: number
  readonly claim: Server | undefined
  server: Server | undefined
}

const current = new AsyncLocalStorage<Link>()

/** The link of the running `through`, for servers that start to listen. */
export const currentLink = (): Link | undefined => current.getStore()

export class Link {
  readonly #proxies = new Map<number, Proxy>()
  readonly #pairs = new Set<Pair>()
  #cut: Cut | undefined
  /** The connections that clients have opened while the link was whole. */
  opened = 0
  /** The attempts of clients to connect during a silent cut. */
  swallowed = 0
  /** The time that bytes take in each direction, in addition to the time of the network itself. */
  delayMs = 0

  /** Runs a function whose servers are reached by this link. */
  through<Result>(run: () => Promise<Result>): Promise<Result> {
    return current.run(this, run)
  }

  /** The ports from which the link reaches the servers, one for each connection that is open. */
  get localPorts(): readonly number[] {
    return [...this.#pairs].flatMap(({ server }) => server?.localPort ?? [])
  }

  /** The number of servers behind the link. */
  get servers(): number {
    return this.#proxies.size
  }

  /** Returns the port at which the link leads to a port of this machine. */
  async portTo(port: number): Promise<number> {
    const known = this.#proxies.get(port)
    if (known) return known.port
    for (let attempt = 1; ; attempt++) {
      const own = PORTS.first + (tried++ % PORTS.count)
      let claim: Server | undefined
      try {
        claim = await claimPort(own)
        const proxy: Proxy = { port: own, claim, server: await this.#listen(own, port) }
        this.#proxies.set(port, proxy)
        return own
      } catch (error) {
        claim?.close()
        if (attempt === PORTS.count) throw error
      }
    }
  }

  async cut(cut: Cut): Promise<void> {
    this.#cut = cut
    if (cut === 'silent') return
    const closing = [...this.#proxies.values()].map((proxy) => closeServer(proxy))
    this.#breakAll()
    await Promise.all(closing)
  }

  /** After a silent cut, servers see the end of the old connections, as after a time-out of theirs; clients see nothing. */
  async restore(): Promise<void> {
    const was = this.#cut
    this.#cut = undefined
    if (was === 'silent') for (const { server } of this.#pairs) server?.resetAndDestroy()
    if (was !== 'reset') return
    for (const [port, proxy] of this.#proxies) proxy.server ??= await this.#listen(proxy.port, port)
  }

  async close(): Promise<void> {
    const closing = [...this.#proxies.values()].map((proxy) => closeServer(proxy))
    this.#breakAll()
    await Promise.all(closing)
    for (const { claim } of this.#proxies.values()) claim?.close()
  }

  #breakAll(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy()
      server?.resetAndDestroy()
    }
    this.#pairs.clear()
  }

  #listen(own: number, port: number): Promise<Server> {
    const server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client, port))
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen(own, '127.0.0.1', () => resolve(server))
    })
  }

  #accept(client: Socket, port: number): void {
    if (this.#cut === 'reset') return void client.resetAndDestroy()
    const isSilent = this.#cut === 'silent'
    if (isSilent) this.swallowed += 1
    else this.opened += 1
    const server = isSilent ? undefined : openSocket({ port, host: '127.0.0.1', allowHalfOpen: true })
    const pair: Pair = { client, server }
    this.#pairs.add(pair)
    // Once a silent cut has met a connection, nothing passes any more, not even its end.
    let isDead = isSilent
    const passes = (): boolean => {
      isDead ||= this.#cut === 'silent'
      return !isDead
    }
    const [there, back] = [this.#lane(), this.#lane()]
    client.on('data', (bytes) => there(() => void (passes() && server?.write(bytes))))
    client.on('end', () => there(() => void (passes() && server?.end())))
    server?.on('data', (bytes) => back(() => void (passes() && client.write(bytes))))
    server?.on('end', () => back(() => void (passes() && client.end())))
    client.on('error', () => client.destroy())
    server?.on('error', () => server.destroy())
    client.on('close', () => {
      this.#pairs.delete(pair)
      if (passes()) server?.destroy()
    })
    server?.on('close', () => void (passes() && client.destroy()))
  }

  /** Returns the function that passes on the bytes of one direction of a connection, in order and after the delay. */
  #lane(): (pass: () => void) => void {
    let last: Promise<void> | undefined
    return (pass) => {
      if (this.delayMs === 0 && !last) return pass()
      const own = Promise.all([last, sleep(this.delayMs)]).then(() => {
        pass()
        if (last === own) last = undefined
      })
      last = own
    }
  }
}

/** Rejects if a link has the port. Resolves to `undefined` on a system that has no second address of loopback. */
function claimPort(port: number): Promise<Server | undefined> {
  const claim = createServer((socket) => socket.destroy()).unref()
  return new Promise((resolve, reject) => {
    claim.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRNOTAVAIL' ? resolve(undefined) : reject(error)))
    claim.listen(port, CLAIM_ADDRESS, () => resolve(claim))
  })
}

function closeServer(proxy: Proxy): Promise<void> {
  const { server } = proxy
  proxy.server = undefined
  return new Promise((resolve) => (server ? server.close(() => resolve()) : resolve()))
}
