-- The health of an object of any of Fairlead's kinds, for Argo CD: docs/gitops.md.
-- argocd-cm.yaml is made of this file.
local health = {status = "Progressing", message = "The operator has not reported on this generation yet"}
local status = obj.status or {}
local generation = obj.metadata.generation

if obj.metadata.deletionTimestamp ~= nil then
  health.message = "The object is being deleted"
  return health
end
-- What an operator says of an older generation says nothing about the spec that was applied.
if status.observedGeneration ~= generation then
  return health
end
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "Stalled" and condition.status == "True" then
    return {status = "Degraded", message = condition.message}
  end
  if condition.type == "Ready" and condition.observedGeneration == generation then
    health.message = condition.message
    if condition.status == "True" and condition.reason == "Suspended" then
      health.status = "Suspended" -- an At with spec.suspend
    elseif condition.status == "True" then
      health.status = "Healthy"
    end
  end
end
return health
