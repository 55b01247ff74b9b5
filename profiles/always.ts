import metrics from '@sluice/observability-metrics'
import anthropic from '@sluice/provider-anthropic'
import offline from '@sluice/provider-offline'
import openai from '@sluice/provider-openai'
import files from '@sluice/tool-files'
import http from '@sluice/tool-http'
import memory from '@sluice/tool-memory'
import shell from '@sluice/tool-shell'

export const always = [offline, openai, anthropic, files, shell, http, memory, metrics]
