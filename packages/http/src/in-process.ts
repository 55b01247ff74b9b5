/** The application without a server, for the command line where no daemon runs. Its one caller is the operator. */
import type { Clients } from '@sluice/delivery'
import type { Runtime } from '@sluice/runtime'
import { createAuth } from './auth.ts'
import { BodyBudget } from './body-budget.ts'
import { ForwardingWatch } from './middleware/client-peer.ts'
import { createLimits } from './middleware/rate-limit.ts'
import { createFetch } from './server.ts'

/** Serves requests as the control socket does, except for streams. `operator` is `cli:<user>`. */
export function serveInProcess(runtime: Runtime, clients: Clients, operator: string): (request: Request) => Promise<Response> {
  const fetch = createFetch({
    runtime,
    auth: createAuth(runtime),
    clients,
    limits: createLimits(runtime.store.counters),
    budget: new BodyBudget(),
    forwarding: new ForwardingWatch(runtime.log),
  })
  return async (request) => fetch(request, { operator })
}
