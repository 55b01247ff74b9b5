/** The page in the browser: its files, the sign-in of a browser, and the command that prints a link (docs/dashboard.md). */
import { defineFeature } from '@sluice/sdk'
import { dashboardCommand } from './command.ts'
import { linksRoute } from './links-route.ts'
import { overviewRoute } from './overview-route.ts'
import { pageRoutes } from './page-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { SignInLinks } from './sign-in-links.ts'

export default defineFeature({
  id: 'dashboard',
  build(host) {
    const links = new SignInLinks(host)
    return {
      routes: [...pageRoutes(), ...sessionRoutes(host, links), linksRoute(host, links), overviewRoute],
      commands: [dashboardCommand(host, links)],
    }
  },
})
