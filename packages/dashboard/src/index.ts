/** The dashboard: a page that shows what the gateway does, and through which people talk to it and decide. docs/dashboard.md. */
import { defineFeature } from '@sluice/sdk'
import { overviewRoute } from './overview-route.ts'
import { pageRoutes } from './page-routes.ts'

export default defineFeature({
  id: 'dashboard',
  build: () => ({ routes: [...pageRoutes(), overviewRoute] }),
})
