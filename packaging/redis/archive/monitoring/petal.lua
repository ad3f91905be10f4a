-- Metrics of petal's module for the Prometheus exporter redis_exporter, which has no others of modules' sections of INFO:
--     redis_exporter --script /etc/redis/petal.lua
-- Each number of the section becomes redis_script_values{key="petal_filters"} and so on. The section has the name under
-- which the module is loaded, petal or bf; the keys begin with petal_ in both cases. A server without the module gives no
-- values.
local values = {}
for _, section in ipairs({'petal', 'bf'}) do
    local info = redis.call('INFO', section)
    for name, number in string.gmatch(info, '\n' .. section .. '_([%w_]+):(%d+)') do
        values[#values + 1] = 'petal_' .. name
        values[#values + 1] = number
    end
end
return values
