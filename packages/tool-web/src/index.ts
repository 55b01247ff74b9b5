/** Lets the model search the web, and read public pages. `host.publicFetch` rejects addresses of private networks. */
import { defineFeature } from '@sluice/sdk'
import { webSection } from './config.ts'
import { webFetch } from './web-fetch.ts'
import { missingForSearch, webSearch } from './web-search.ts'

export default defineFeature({
  id: 'tool-web',
  section: webSection,
  build(host, config) {
    const missing = missingForSearch(config)
    return {
      tools: [webSearch(host, config), webFetch(host, config)],
      check: async () =>
        missing === undefined
          ? [
              {
                status: 'ok',
                detail:
                  config.search === undefined ? 'web_fetch; no search service is set' : `web_fetch, and web_search by ${config.search}`,
              },
            ]
          : [{ status: 'fail', detail: missing, fix: 'sluice config set tools.web.search_key, or tools.web.search_url' }],
    }
  },
})
